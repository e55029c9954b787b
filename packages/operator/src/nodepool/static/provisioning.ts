/** `static.provisioning`: creates the claims that a static NodePool lacks (cluster-state.md 15.3). */
import { isConditionTrue } from '@tenon/api'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import type { LaunchGuard } from '../../cloud/launch-guard.ts'
import { done, type ReconcileResult } from '@tenon/kube'
import { inParallel } from '../../in-parallel.ts'
import type { LimitReport } from '../limit-report.ts'
import { nodeLimit, type StaticClaims } from './static-claims.ts'
import type { LaunchPauses } from './launch-pauses.ts'
import { isNowLeaving, isNowReady, isResized, type StaticPool, type StaticPools } from './static-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools'>
  readonly state: Pick<ClusterState, 'brake' | 'decidable' | 'hasSynced' | 'poolClaims' | 'readinessPauses'>
  readonly pools: StaticPools
  readonly claims: StaticClaims
  readonly pauses: LaunchPauses
  readonly limits: LimitReport
  readonly provider: Pick<CloudProvider, 'getInstanceTypes'>
  readonly launchGuard: Pick<LaunchGuard, 'offeringsFor' | 'onTrialFor' | 'opened'>
}

const unsyncedMs = 1000
const settledMs = 60_000
const limitedMs = 30_000
/** Until it is looked at again whether launches are still paused. */
const heldMs = 5_000
const probePollMs = 1000
/** Until it is looked at again whether anything can be launched. */
const closedMs = 10_000
const parallelCreates = 20
/** Claims created in one go, at most; the next go follows at once. */
const batchLimit = 500

/** Reconciles one static NodePool that has too few claims. */
export class StaticProvisioning implements ControllerSpec {
  readonly name = 'static.provisioning'
  readonly concurrency = { least: 10, most: 10 }
  readonly #deps: Dependencies
  /** UIDs of NodePools whose claims the API server itself was asked for once. */
  readonly #learned = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    deps.caches.nodeClaims.onChange((change) => {
      deps.pauses.note(change)
    })
  }

  watch(enqueue: Enqueue): void {
    const { caches, launchGuard, pools } = this.#deps
    enqueueChanged(caches.nodePools, enqueue, (change) => isResized(change) || isNowReady(change))
    launchGuard.opened.add(() => {
      for (const { metadata } of caches.nodePools.list())
        if (pools.get(metadata.name) !== undefined) enqueue(metadata.name)
    })
    caches.nodeClaims.onChange((change) => {
      const pool = pools.nameOf(change.object)
      if (pool !== undefined && isNowLeaving(change)) enqueue(pool)
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { claims, pools, state } = this.#deps
    const pool = this.#readyPool(name)
    if (pool === undefined) {
      // Without the pool nobody will create these again.
      if (pools.get(name) === undefined) state.poolClaims.release(...state.poolClaims.unsettled(name))
      return done
    }
    if (!this.#learned.has(pool.metadata.uid ?? '')) {
      // Later claims of others hold nothing up: what is here of this pool is known by then.
      if (!state.hasSynced && !state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
      await claims.learn(pool, signal)
      this.#learned.add(pool.metadata.uid ?? '')
      return { kind: 'after', delayMs: 0 }
    }
    const pauseMs = this.#pauseMs(name)
    return pauseMs > 0 ? { kind: 'after', delayMs: pauseMs } : await this.#fill(pool, signal)
  }

  async #fill(pool: StaticPool, signal: AbortSignal): Promise<ReconcileResult> {
    const { claims, limits, pauses, state } = this.#deps
    const { name } = pool.metadata
    const { active, pendingDisruption } = state.poolClaims.of(name)
    const unsettled = state.poolClaims.unsettled(name)
    const isFull = active.length + pendingDisruption.length >= pool.spec.replicas
    const missing = isFull ? 0 : pool.spec.replicas - active.length
    const offers = missing === 0 ? 'open' : await this.#offers(pool, signal)
    if (offers === 'closed') return { kind: 'after', delayMs: closedMs }
    const isProbing = offers === 'onTrial' || pauses.isProbing(name)
    // What becomes of the probe says whether there are instances for the others.
    if (missing > 0 && isProbing && active.some(({ status }) => (status?.providerID ?? '') === ''))
      return { kind: 'after', delayMs: probePollMs }
    const wanted = Math.min(missing, isProbing ? 1 : batchLimit)
    const again = unsettled.slice(0, wanted)
    const names = [...again, ...claims.reserve(pool, wanted - again.length)]
    if (!(await this.#create(pool, names, signal))) return { kind: 'backoff' }
    if (unsettled.length > wanted) await this.#settle(name, unsettled.slice(wanted), signal)
    if (missing === 0) return { kind: 'after', delayMs: settledMs }
    if (names.length === 0) {
      limits.ofNodes(pool, { nodes: active.length, replicas: pool.spec.replicas, limit: nodeLimit(pool) })
      return { kind: 'after', delayMs: limitedMs }
    }
    if (isProbing) return { kind: 'after', delayMs: probePollMs }
    return { kind: 'after', delayMs: names.length === batchLimit ? 0 : settledMs }
  }

  /** Whether anything that the pool allows can be launched: what failed lately is left to one claim. */
  async #offers(pool: StaticPool, signal: AbortSignal): Promise<'open' | 'onTrial' | 'closed'> {
    const { launchGuard, provider } = this.#deps
    try {
      const types = await provider.getInstanceTypes(pool, signal)
      // Of a pool without types nothing is known: its launches tell.
      if (types.length === 0) return 'open'
      const offerings = launchGuard.offeringsFor(pool, types)
      const isWithheld = types.some((type) => type.offerings.some(({ unavailability }) => unavailability))
      if (offerings.length === 0) return isWithheld ? 'closed' : 'open'
      return offerings.every(({ ref }) => launchGuard.onTrialFor(pool, ref)) ? 'onTrial' : 'open'
    } catch (error) {
      if (signal.aborted || !isProviderError(error)) throw error
      return 'open'
    }
  }

  /** How long nothing is launched for the pool. */
  #pauseMs(name: string): number {
    const { pauses, state } = this.#deps
    const failedMs = Math.max(pauses.leftMs(name), state.readinessPauses.leftMs(name))
    return state.brake.holding(name, 'launches') === undefined ? failedMs : Math.max(failedMs, heldMs)
  }

  #readyPool(name: string): StaticPool | undefined {
    const pool = this.#deps.pools.valid(name)
    return pool !== undefined && isConditionTrue(pool, 'Ready') ? pool : undefined
  }

  /**
   * @returns false when the pool may not grow any more.
   * @throws AggregateError of those that failed, after all were tried.
   */
  async #create(pool: StaticPool, names: readonly string[], signal: AbortSignal): Promise<boolean> {
    let mayGrow = true
    const failures = await inParallel(names, parallelCreates, async (name) => {
      const current = this.#current(pool)
      if (current !== undefined) {
        await this.#deps.claims.create(current, name, 'provisioned', signal)
        return
      }
      this.#deps.state.poolClaims.release(name)
      mayGrow = false
    })
    if (failures.length === 0) return mayGrow
    const [first] = failures
    throw new AggregateError(
      failures,
      `creating ${failures.length} NodeClaim(s): ${first instanceof Error ? first.message : String(first)}`,
    )
  }

  /** The pool as it is by now; undefined when it is gone, not ready or above its limit. */
  #current(pool: StaticPool): StaticPool | undefined {
    const { name, uid } = pool.metadata
    const current = this.#readyPool(name)
    if (current === undefined || current.metadata.uid !== uid) return undefined
    if (this.#deps.state.brake.holding(name, 'launches') !== undefined) return undefined
    return this.#deps.state.poolClaims.occupied(name) > nodeLimit(current) ? undefined : current
  }

  /** Looks up claims that are wanted no more and may exist; what can still come to be stays held. */
  async #settle(pool: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const name of names) await this.#deps.claims.settle(pool, name, signal)
  }
}
