/** `static.provisioning`: creates the claims that a static NodePool lacks (cluster-state.md 15.3). */
import { isConditionTrue, karpenterKinds, labels } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import { OvertakenError } from '../../cloud/expected-failures.ts'
import { inParallel } from '../../provisioning/in-parallel.ts'
import { createStaticClaim, nodeLimit, reserveStaticClaims } from './static-claims.ts'
import type { OperatorContext } from '../../context.ts'
import { recordLimitReached } from '../../provisioning/scheduling-report.ts'
import { validatePool } from '../../cluster/nodepools/pool-problems.ts'
import { LaunchPauses } from './launch-pauses.ts'
import {
  isNowLeaving,
  isNowReady,
  isResized,
  type StaticPool,
  staticPool,
  staticPoolOf,
} from './static-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'

const unsyncedMs = 1000
const settledMs = 60_000
const limitedMs = 30_000
const probePollMs = 1000
/** A request without an answer is taken to have ended, one way or the other, after this long. */
const lateMs = 60_000
const parallelCreates = 20
/** Claims created in one go, at most; the next go follows at once. */
const batchLimit = 500

/** Reconciles one static NodePool that has too few claims. */
export class StaticProvisioning implements ControllerSpec {
  readonly name = 'static.provisioning'
  readonly concurrency = { least: 10, most: 10 }
  readonly #context: OperatorContext
  /** UIDs of NodePools whose claims the API server itself was asked for once. */
  readonly #learned = new Set<string>()
  readonly #pauses: LaunchPauses

  constructor(context: OperatorContext) {
    this.#context = context
    this.#pauses = new LaunchPauses(context.clock)
    context.caches.nodeClaims.onChange((change) => {
      this.#pauses.note(change)
    })
  }

  watch(enqueue: Enqueue): void {
    const { caches } = this.#context
    enqueueChanged(caches.nodePools, enqueue, (change) => isResized(change) || isNowReady(change))
    caches.nodeClaims.onChange((change) => {
      const pool = staticPoolOf(this.#context, change.object)
      if (pool !== undefined && isNowLeaving(change)) enqueue(pool)
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { state, logger } = this.#context
    const pool = this.#readyPool(name)
    if (pool === undefined) {
      // Without the pool nobody will create these again.
      if (staticPool(this.#context, name) === undefined)
        state.poolClaims.release(...state.poolClaims.unsettled(name))
      return done
    }
    if (!this.#learned.has(pool.metadata.uid ?? '')) {
      // Later claims of others hold nothing up: what is here of this pool is known by then.
      if (!state.hasSynced && !state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
      await this.#learn(pool, signal)
      return { kind: 'after', delayMs: 0 }
    }
    const pauseMs = Math.max(this.#pauses.leftMs(name), state.readinessPauses.leftMs(name))
    if (pauseMs > 0) return { kind: 'after', delayMs: pauseMs }
    const { active, pendingDisruption } = state.poolClaims.of(name)
    const unsettled = state.poolClaims.unsettled(name)
    const isFull = active.length + pendingDisruption.length >= pool.spec.replicas
    const missing = isFull ? 0 : pool.spec.replicas - active.length
    const isProbing = this.#pauses.isProbing(name)
    // What becomes of the probe says whether there are machines for the others.
    if (missing > 0 && isProbing && active.some(({ status }) => (status?.providerID ?? '') === ''))
      return { kind: 'after', delayMs: probePollMs }
    const wanted = Math.min(missing, isProbing ? 1 : batchLimit)
    const again = unsettled.slice(0, wanted)
    const names = [...again, ...reserveStaticClaims(this.#context, pool, wanted - again.length)]
    await this.#create(pool, names, signal)
    if (unsettled.length > wanted) await this.#settle(name, unsettled.slice(wanted), signal)
    if (missing === 0) return { kind: 'after', delayMs: settledMs }
    if (names.length === 0) {
      logger.info('nodepool has reached its limit for nodes', {
        NodePool: { name },
        nodes: active.length,
        replicas: pool.spec.replicas,
        limit: nodeLimit(pool),
      })
      recordLimitReached(this.#context, pool, `has ${active.length} of ${pool.spec.replicas} nodes`)
      return { kind: 'after', delayMs: limitedMs }
    }
    if (isProbing) return { kind: 'after', delayMs: probePollMs }
    return { kind: 'after', delayMs: names.length === batchLimit ? 0 : settledMs }
  }

  #readyPool(name: string): StaticPool | undefined {
    const pool = staticPool(this.#context, name)
    if (pool === undefined || !isConditionTrue(pool, 'Ready')) return undefined
    return validatePool(pool, this.#context.provider).length === 0 ? pool : undefined
  }

  /**
   * Makes the state know every claim of the pool. A process that takes over may watch with a delay,
   * and would make claims that another has just made.
   */
  async #learn({ metadata }: StaticPool, signal: AbortSignal): Promise<void> {
    const { client, state } = this.#context
    const labelSelector = { matchLabels: { [labels.nodePool]: metadata.name } }
    const claims = await client.list(karpenterKinds.nodeClaim, { labelSelector, signal })
    for (const claim of claims) state.seed(claim)
    this.#learned.add(metadata.uid ?? '')
  }

  /** @throws AggregateError of those that failed, after all were tried. */
  async #create(pool: StaticPool, names: readonly string[], signal: AbortSignal): Promise<void> {
    const failures = await inParallel(names, parallelCreates, async (name) => {
      const current = this.#current(pool)
      if (typeof current === 'string') {
        this.#context.state.poolClaims.release(name)
        throw new OvertakenError(current)
      }
      await createStaticClaim(this.#context, current, name, 'provisioned', signal)
    })
    if (failures.length === 0) return
    const [first] = failures
    throw new AggregateError(
      failures,
      `creating ${failures.length} NodeClaim(s): ${first instanceof Error ? first.message : String(first)}`,
    )
  }

  /** The pool as it is by now; a sentence when it may not grow any more. */
  #current(pool: StaticPool): StaticPool | string {
    const { name, uid } = pool.metadata
    const current = this.#readyPool(name)
    if (current === undefined || current.metadata.uid !== uid)
      return `NodePool ${name} may not launch any more`
    if (this.#context.state.poolClaims.occupied(name) > nodeLimit(current))
      return `NodePool ${name} exceeds its limit for nodes`
    return current
  }

  /** Looks up claims that are wanted no more and may exist; what can still come to be stays held. */
  async #settle(pool: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    const { client, clock, state } = this.#context
    const ended = new Set(state.poolClaims.unsettled(pool, clock.monotonic() - lateMs))
    for (const name of names.filter((each) => ended.has(each))) {
      const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
      if (claim !== undefined) state.seed(claim)
      state.poolClaims.release(name)
    }
  }
}
