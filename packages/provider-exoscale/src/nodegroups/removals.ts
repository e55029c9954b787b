/**
 * Removes members of a pool; requests of several callers are sent as one call (cluster-autoscaler.md 1.4; 9, trap 33).
 */
import { NodeGroupError } from '@tenon/provider'
import type { NodeGroupApi, PoolRef, SizedPool } from './call-api.ts'
import { isBusy } from './failures.ts'
import { membersOf, type PoolWatch } from './pool-watch.ts'

export interface Removal {
  /** Instance ids. */
  readonly ids: readonly string[]
  /** The pool must not become smaller than this. */
  readonly minSize: number
  readonly signal: AbortSignal
}

interface Request extends Removal {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const maxRefusals = 10
/** Instances in these states count as gone. */
const leaving: ReadonlySet<string> = new Set(['destroying', 'destroyed', 'expunging'])

export class Removals {
  readonly #ref: PoolRef
  readonly #api: NodeGroupApi
  readonly #watch: PoolWatch
  #waiting: Request[] = []

  constructor(ref: PoolRef, api: NodeGroupApi, watch: PoolWatch) {
    this.#ref = ref
    this.#api = api
    this.#watch = watch
  }

  /** Adds a removal. `isFirst`: the caller must arrange for {@link carryOut}. */
  add(removal: Removal): { readonly gone: Promise<void>; readonly isFirst: boolean } {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const request: Request = {
      ...removal,
      resolve: () => {
        resolve(undefined)
      },
      reject,
    }
    this.#waiting.push(request)
    return { gone: promise, isFirst: this.#waiting.length === 1 }
  }

  /** Sends all waiting removals. Never rejects: each caller gets its own result. */
  async carryOut(): Promise<void> {
    const requests = this.#waiting
    this.#waiting = []
    const [first] = requests
    if (first === undefined) return
    try {
      const pool = await this.#watch.untilRunning(first.signal)
      const granted = await this.#granted(requests, pool)
      const ids = [...new Set(granted.flatMap(({ doomed }) => doomed))]
      if (ids.length > 0) await this.#evict(ids, first.signal)
      for (const { request } of granted) request.resolve()
    } catch (error) {
      for (const request of requests) request.reject(error)
    }
  }

  /** Removals that are allowed, with those of their instances that are members; rejects the others. */
  async #granted(requests: readonly Request[], pool: SizedPool) {
    const granted: { readonly request: Request; readonly doomed: readonly string[] }[] = []
    const members = new Set(membersOf(pool))
    const doomed = new Set<string>()
    for (const request of requests) {
      const here = request.ids.filter((id) => members.has(id))
      try {
        for (const id of request.ids) if (!members.has(id)) await this.#demandGone(id, request.signal)
        if (here.length > 0) demandSize(pool, request.minSize, new Set([...doomed, ...here]).size)
      } catch (error) {
        request.reject(error)
        continue
      }
      for (const id of here) doomed.add(id)
      granted.push({ request, doomed: here })
    }
    return granted
  }

  /** An instance that is not a member must be gone. If it is not, nothing is removed. */
  async #demandGone(id: string, signal: AbortSignal): Promise<void> {
    const instance = await this.#api.instance(id, signal)
    if (instance !== undefined && !leaving.has(instance.state ?? ''))
      throw new NodeGroupError(`instance ${id} is no member of instance pool ${this.#ref.poolId}`)
  }

  async #evict(ids: readonly string[], signal: AbortSignal): Promise<void> {
    let left = ids
    for (let refusals = 0; left.length > 0; refusals++) {
      const error = await this.#tryEvict(left, signal)
      const pool = await this.#watch.untilRunning(signal)
      const members = new Set(membersOf(pool))
      left = left.filter((id) => members.has(id))
      // Already removed by somebody else.
      if (left.length === 0) return
      if (error === undefined)
        throw new NodeGroupError(`instance pool ${this.#ref.poolId} still has members that were evicted`)
      if (!isBusy(error) || refusals >= maxRefusals) throw error
    }
  }

  /** @returns the error, if any. The call may have taken effect, which the members show. */
  async #tryEvict(ids: readonly string[], signal: AbortSignal): Promise<unknown> {
    try {
      const operation = await this.#api.evict(this.#ref, ids, signal)
      await this.#watch.untilEnded(operation, signal)
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return error
    }
  }
}

function demandSize({ id, size }: SizedPool, minSize: number, count: number): void {
  if (size - count >= minSize) return
  throw new NodeGroupError(
    `instance pool ${id} has size ${size}: without ${count} members it would be below its minimum ${minSize}`,
  )
}
