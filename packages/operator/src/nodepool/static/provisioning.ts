import { counted, isConditionTrue, labels, type NodeClaim } from '@tenon/api'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import type { LaunchGuard } from '../../cloud/launch-guard.ts'
import { type Change, done, type ReconcileResult } from '@tenon/kube'
import { inParallel } from '../../in-parallel.ts'
import type { LimitReport } from '../limit-report.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Clock } from '@tenon/runtime'
import { FailureBackoff } from '../../state/failure-backoff.ts'
import {
  isNowLeaving,
  isNowReady,
  isResized,
  nodeLimit,
  type StaticClaims,
  staticPool,
  type StaticPool,
  staticPoolName,
  validStaticPool,
} from './static-pools.ts'

interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly launchGuard: LaunchGuard
  readonly claims: StaticClaims
  readonly limits: LimitReport
  readonly clock: Clock
}

const unsyncedMs = 1000
const settledMs = 60_000
const limitedMs = 30_000
const pausedPollMs = 5_000
const probePollMs = 1000
const soldOutPollMs = 10_000
const parallelCreates = 20
/** Maximum number of claims created in one pass; the next pass follows at once. */
const batchLimit = 500

/** `static.provisioning`: creates the missing claims of static NodePools (cluster-state.md 15.3). */
export class StaticProvisioning implements ControllerSpec {
  readonly name = 'static.provisioning'
  readonly concurrency = { least: 10, most: 10 }
  readonly #deps: Dependencies
  readonly #pauses: LaunchPauses
  /** UIDs of NodePools whose claims were listed from the API server. */
  readonly #learned = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#pauses = new LaunchPauses(deps.clock)
    deps.caches.nodeClaims.onChange((change) => {
      this.#pauses.note(change)
    })
  }

  watch(enqueue: Enqueue): void {
    const { caches, launchGuard, state } = this.#deps
    enqueueChanged(caches.nodePools, enqueue, (change) => isResized(change) || isNowReady(change))
    launchGuard.opened.add(() => {
      for (const { metadata } of caches.nodePools.list())
        if (staticPool(state, metadata.name) !== undefined) enqueue(metadata.name)
    })
    caches.nodeClaims.onChange((change) => {
      const pool = staticPoolName(caches, change.object)
      if (pool !== undefined && isNowLeaving(change)) enqueue(pool)
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { claims, state } = this.#deps
    const pool = this.#readyPool(name)
    if (pool === undefined) {
      // Without the pool nobody creates these again.
      if (staticPool(state, name) === undefined) claims.abandon(...state.poolClaims.unsettled(name))
      return done
    }
    if (!this.#learned.has(pool.metadata.uid ?? '')) {
      // After the first sync, claims of other pools that the caches do not show yet do not matter.
      if (!state.hasSynced && !state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
      await claims.learn(pool, signal)
      this.#learned.add(pool.metadata.uid ?? '')
      return { kind: 'after', delayMs: 0 }
    }
    const pauseMs = this.#pauseMs(name)
    return pauseMs > 0 ? { kind: 'after', delayMs: pauseMs } : await this.#fill(pool, signal)
  }

  async #fill(pool: StaticPool, signal: AbortSignal): Promise<ReconcileResult> {
    const { claims, limits, state } = this.#deps
    const { name } = pool.metadata
    const { active, pendingDisruption } = state.poolClaims.of(name)
    const unsettled = state.poolClaims.unsettled(name)
    const isFull = active.length + pendingDisruption.length >= pool.spec.replicas
    const missing = isFull ? 0 : pool.spec.replicas - active.length
    const offers = missing === 0 ? 'open' : await this.#offers(pool, signal)
    if (offers === 'closed') return { kind: 'after', delayMs: soldOutPollMs }
    const isProbing = offers === 'onTrial' || this.#pauses.isProbing(name)
    // One claim finds out whether there are instances for the others.
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

  /** `onTrial`: all that can be launched failed recently, and one claim tries it. */
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

  #pauseMs(name: string): number {
    const { state } = this.#deps
    const failedMs = Math.max(this.#pauses.leftMs(name), state.readinessPauses.leftMs(name))
    return state.brake.holding(name, 'launches') === undefined ? failedMs : Math.max(failedMs, pausedPollMs)
  }

  #readyPool(name: string): StaticPool | undefined {
    const { provider, state } = this.#deps
    const pool = validStaticPool(state, provider, name)
    return pool !== undefined && isConditionTrue(pool, 'Ready') ? pool : undefined
  }

  /** @returns false if the pool may not grow any more. @throws AggregateError after all were tried. */
  async #create(pool: StaticPool, names: readonly string[], signal: AbortSignal): Promise<boolean> {
    let mayGrow = true
    const failures = await inParallel(names, parallelCreates, async (name) => {
      const current = this.#current(pool)
      if (current !== undefined) {
        const created = await this.#deps.claims.create(current, name, 'provisioned', signal)
        if (created.kind === 'created') return
        const { active } = this.#deps.state.poolClaims.of(pool.metadata.name)
        const consequence = `has ${active.length} of ${pool.spec.replicas} nodes`
        this.#deps.limits.quotaReached(current, created, consequence)
        mayGrow = false
        return
      }
      this.#deps.claims.abandon(name)
      mayGrow = false
    })
    if (failures.length === 0) return mayGrow
    const [first] = failures
    throw new AggregateError(
      failures,
      `creating ${counted(failures.length, 'NodeClaim')}: ${first instanceof Error ? first.message : String(first)}`,
    )
  }

  /** The pool as it is now; undefined if it is gone, not ready, paused or above its limit. */
  #current(pool: StaticPool): StaticPool | undefined {
    const { name, uid } = pool.metadata
    const current = this.#readyPool(name)
    if (current === undefined || current.metadata.uid !== uid) return undefined
    if (this.#deps.state.brake.holding(name, 'launches') !== undefined) return undefined
    return this.#deps.state.poolClaims.occupied(name) > nodeLimit(current) ? undefined : current
  }

  /** Looks up claims that may exist and are not needed any more; those that may still be created keep their name. */
  async #settle(pool: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const name of names) await this.#deps.claims.settle(pool, name, signal)
  }
}

const minute = 60_000
const backoff = { freeFailures: 0, baseMs: 1000, capMs: minute, memoryMs: 60 * minute } as const

/**
 * Pauses launches of NodePools whose claims are deleted without an instance. Otherwise a cloud without capacity would be asked
 * as fast as claims can be written.
 */
class LaunchPauses {
  readonly #failures: FailureBackoff

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#failures = new FailureBackoff(clock, backoff)
  }

  note(change: Change<NodeClaim>): void {
    const { metadata, status } = change.object
    const pool = metadata.labels?.[labels.nodePool] ?? ''
    const isLaunched = (status?.providerID ?? '') !== ''
    if (isLaunched) {
      const isNew = change.kind === 'updated' && (change.old.status?.providerID ?? '') === ''
      if (isNew) this.#failures.forget([pool])
      return
    }
    // Claims that fail together are one failure.
    if (isNowLeaving(change) && this.leftMs(pool) === 0) this.#failures.note([pool])
  }

  leftMs(pool: string): number {
    return this.#failures.leftMs(pool)
  }

  /** Whether the last launch failed, so that a single claim should try again. */
  isProbing(pool: string): boolean {
    return this.#failures.hasFailed(pool)
  }
}
