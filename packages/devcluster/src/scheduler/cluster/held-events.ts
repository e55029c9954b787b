/** Keeps what happens in the cluster back while a group is tried: all of a trial sees one state (gangs.md 5.3). */
import type { LocalApi, LocalHandler } from '../../contract.ts'

/** What the scheduler reads the cluster with. */
export type ReadApi = Pick<LocalApi, 'definitions' | 'get' | 'list' | 'subscribe'>

export class HeldEvents {
  /** What came since it is held; undefined while nothing is. */
  #held: (() => void)[] | undefined

  hold(): void {
    this.#held ??= []
  }

  /** Passes on what came meanwhile, in order. */
  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const each of held) each()
  }

  /** The same API, whose events are held. */
  through(api: LocalApi): ReadApi {
    return {
      definitions: () => api.definitions(),
      get: (...args) => api.get(...args),
      list: (...args) => api.list(...args),
      subscribe: (type, handler) => api.subscribe(type, this.#holding(handler)),
    }
  }

  #holding<T>({ added, updated, deleted }: LocalHandler<T>): LocalHandler<T> {
    return {
      ...(added && { added: (object: T) => this.#pass(() => added(object)) }),
      ...(updated && { updated: (object: T, old: T) => this.#pass(() => updated(object, old)) }),
      ...(deleted && { deleted: (object: T) => this.#pass(() => deleted(object)) }),
    }
  }

  #pass(event: () => void): void {
    if (this.#held === undefined) event()
    else this.#held.push(event)
  }
}
