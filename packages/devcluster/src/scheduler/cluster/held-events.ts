/** Holds back events while a group is tried, so that the whole trial sees one state (gangs.md 5.3). */
import type { LocalApi, LocalHandler } from '../../contract.ts'

/** How the scheduler reads the cluster. */
export type ReadApi = Pick<LocalApi, 'definitions' | 'get' | 'list' | 'subscribe'>

export class HeldEvents {
  /** Events since the hold began; undefined if there is no hold. */
  #held: (() => void)[] | undefined

  hold(): void {
    this.#held ??= []
  }

  /** Delivers the held events in order. */
  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const each of held) each()
  }

  /** The same API with held events. */
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
