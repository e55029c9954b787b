/**
 * Changes of one pool, one after the other, as the API refuses concurrent changes (cluster-autoscaler.md 1.4).
 */
import { type Increase, NodeGroupError } from '@tenon/provider'
import type { NodeGroupApi, PoolRef, SizedPool } from './call-api.ts'
import { isBusy } from './failures.ts'
import { type Removal, Removals } from './removals.ts'
import { membersOf, type PoolWatch } from './pool-watch.ts'

interface Growth {
  /** The known size at the time of the call. */
  readonly from: number
  readonly to: number
}

const maxRefusals = 10

export class PoolChanges {
  readonly #ref: PoolRef
  readonly #api: NodeGroupApi
  readonly #watch: PoolWatch
  readonly #removals: Removals
  readonly #growths = new Set<Growth>()
  #queued = 0
  #last: Promise<void> = Promise.resolve()

  constructor(ref: PoolRef, api: NodeGroupApi, watch: PoolWatch) {
    this.#ref = ref
    this.#api = api
    this.#watch = watch
    this.#removals = new Removals(ref, api, watch)
  }

  /** The largest requested size that is not reached yet. */
  get askedSize(): number {
    return Math.max(0, ...[...this.#growths].map(({ to }) => to))
  }

  /** Resolves when the API has accepted the increase, or at once if it waits for a change in progress. */
  async increase(from: number, delta: number, signal: AbortSignal): Promise<Increase> {
    const growth: Growth = { from, to: from + delta }
    const isIdle = this.#queued === 0
    const accepted = Promise.withResolvers<undefined>()
    const accept = () => {
      accepted.resolve(undefined)
    }
    this.#growths.add(growth)
    const settled = this.#enqueue(() => this.#grow(growth, accept, signal)).finally(() => {
      this.#growths.delete(growth)
    })
    settled.catch(() => undefined)
    if (isIdle) await Promise.race([accepted.promise, settled])
    return { targetSize: growth.to, settled }
  }

  /** Removals that wait at the same time are sent as one call. */
  remove(removal: Removal): Promise<void> {
    const { gone, isFirst } = this.#removals.add(removal)
    if (isFirst) void this.#enqueue(() => this.#removals.carryOut())
    return gone
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#queued++
    const done = this.#last.then(work).finally(() => {
      this.#queued--
    })
    this.#last = done.catch(() => undefined)
    return done
  }

  async #grow(growth: Growth, accept: () => void, signal: AbortSignal): Promise<void> {
    let size = 0
    for (let refusals = 0; ; refusals++) {
      const pool = await this.#readyPool(accept, signal)
      size = sizeToAsk(growth, pool)
      // A size below the current one would delete members.
      if (size <= sizeOf(pool)) break
      try {
        const operation = await this.#api.scale(this.#ref, size, signal)
        accept()
        await this.#watch.untilEnded(operation, signal)
        break
      } catch (error) {
        // Another change came first, or a call was repeated after its response was lost.
        if (isBusy(error) && refusals < maxRefusals) continue
        if (!(await this.#hasSize(size, signal))) throw error
        break
      }
    }
    accept()
    const reached = sizeOf(await this.#watch.untilRunning(signal))
    if (reached < size)
      throw new NodeGroupError(`instance pool ${this.#ref.poolId} has size ${reached}; ${size} was asked for`)
  }

  /** Whether the increase took effect although the call failed. */
  async #hasSize(size: number, signal: AbortSignal): Promise<boolean> {
    try {
      return sizeOf(await this.#watch.read(signal)) >= size
    } catch {
      signal.throwIfAborted()
      return false
    }
  }

  async #readyPool(accept: () => void, signal: AbortSignal): Promise<SizedPool> {
    const pool = await this.#watch.read(signal)
    if (pool.state === 'running') return pool
    accept()
    return await this.#watch.untilRunning(signal)
  }
}

/**
 * Somebody may have changed the pool since the increase was decided, so no more than the decided size is requested.
 */
function sizeToAsk({ from, to }: Growth, pool: SizedPool): number {
  const size = sizeOf(pool)
  return size < from ? size + (to - from) : Math.max(size, to)
}

function sizeOf(pool: SizedPool): number {
  return Math.max(pool.size, membersOf(pool).length)
}
