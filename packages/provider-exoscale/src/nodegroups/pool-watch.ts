/** Watches one pool until it is in the desired state (cluster-autoscaler.md 1.4). */
import { NodeGroupError } from '@tenon/provider'
import { type Clock, messageOf } from '@tenon/runtime'
import type { Operation } from '../api/types.ts'
import type { NodeGroupApi, PoolRef, SizedPool } from './call-api.ts'
import { hasOperationFailed } from './failures.ts'

/** Longer than the minute after which Cluster Autoscaler gives up an operation, as pools continue to grow. */
const operationMs = 10 * 60_000
const runningMs = 10 * 60_000
const pauseMs = 10_000

/** States that a pool never leaves by itself. */
const dead: ReadonlySet<string> = new Set(['suspended', 'destroying'])

export class PoolWatch {
  readonly #ref: PoolRef
  readonly #api: NodeGroupApi
  readonly #clock: Clock
  readonly #onRead: (pool: SizedPool) => void

  constructor(ref: PoolRef, api: NodeGroupApi, clock: Clock, onRead: (pool: SizedPool) => void) {
    this.#ref = ref
    this.#api = api
    this.#clock = clock
    this.#onRead = onRead
  }

  /** Rejects if the pool does not exist. */
  async read(signal: AbortSignal): Promise<SizedPool> {
    const pool = await this.#api.pool(this.#ref.poolId, signal)
    if (pool === undefined)
      throw new NodeGroupError(`instance pool ${this.#ref.poolId} does not exist any more`)
    this.#onRead(pool)
    return pool
  }

  /** The pool, once no change is in progress. Failed reads are retried. */
  async untilRunning(signal: AbortSignal): Promise<SizedPool> {
    const startMs = this.#clock.monotonic()
    for (;;) {
      const { pool, problem } = await this.#look(signal)
      if (pool?.state === 'running') return pool
      if (this.#clock.monotonic() - startMs >= runningMs)
        throw new NodeGroupError(
          `instance pool ${this.#ref.poolId} was not running within ${runningMs / 60_000} min: ${problem}`,
        )
      await this.#clock.sleep(pauseMs, signal)
    }
  }

  /** Resolves when an operation has succeeded, or when its result is unknown. */
  async untilEnded(operation: Operation, signal: AbortSignal): Promise<void> {
    try {
      await this.#api.finished(operation, operationMs, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (hasOperationFailed(error)) throw error
    }
  }

  async #look(signal: AbortSignal): Promise<{ readonly pool?: SizedPool; readonly problem: string }> {
    const { poolId } = this.#ref
    const pool = await this.#api.pool(poolId, signal).catch((error: unknown) => messageOf(error))
    signal.throwIfAborted()
    if (typeof pool === 'string') return { problem: pool }
    if (pool === undefined) throw new NodeGroupError(`instance pool ${poolId} does not exist any more`)
    this.#onRead(pool)
    if (dead.has(pool.state)) throw new NodeGroupError(`instance pool ${poolId} is ${pool.state}`)
    return { pool, problem: `it is ${pool.state}` }
  }
}

/** Why a pool in this state cannot be scaled; undefined if it can, now or soon. */
export function stateProblem({ id, state }: SizedPool): string | undefined {
  return dead.has(state) ? `instance pool ${id} is ${state}` : undefined
}

export function membersOf({ instances = [] }: SizedPool): readonly string[] {
  return instances.map(({ id }) => id)
}
