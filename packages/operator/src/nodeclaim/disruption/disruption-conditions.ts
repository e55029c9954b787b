/** `nodeclaim.disruption`: keeps the conditions Drifted and Consolidatable (lifecycle.md 9). */
import type { Clock } from '@tenon/runtime'
import {
  type Condition,
  ConditionSet,
  karpenterKinds,
  labels,
  type NodeClaim,
  type NodePool,
} from '@tenon/api'
import { type Change, done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Caches, indexes } from '../../state/caches.ts'
import { isSameValue } from '../../state/same-value.ts'
import { isUnreadable } from '../../state/readable.ts'
import { consolidateAfterMs } from '../../state/nodepools/managed-pool.ts'
import { InstanceTypeDrift } from './instance-type-drift.ts'
import { staticDrift } from './static-drift.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodeClasses' | 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly provider: Pick<
    CloudProvider,
    'getInstanceTypes' | 'isDrifted' | 'reservationLabel' | 'wellKnownLabels'
  >
  readonly clock: Clock
  readonly settings: Pick<Settings, 'driftPeriodMs'>
}

/** Reconciles the disruption conditions of one NodeClaim. */
export class DisruptionConditions implements ControllerSpec {
  readonly name = 'nodeclaim.disruption'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  readonly #instanceTypes: InstanceTypeDrift

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#instanceTypes = new InstanceTypeDrift(deps)
  }

  watch(enqueue: Enqueue): void {
    const { nodeClaims, nodePools, nodeClasses } = this.#deps.caches
    enqueueChanged(nodeClaims, enqueue)
    nodePools.onChange((change) => {
      if (!mayCauseDrift(change)) return
      for (const claim of nodeClaims.byIndex(indexes.byNodePool, change.object.metadata.name))
        enqueue(claim.metadata.name)
    })
    for (const cache of nodeClasses)
      cache.onChange(({ object }) => {
        for (const { metadata, spec } of nodeClaims.list())
          if (spec.nodeClassRef.name === object.metadata.name) enqueue(metadata.name)
      })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { caches, state, client } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined || !state.isManaged(claim))
      return done
    const pool = caches.nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    if (pool === undefined || isUnreadable(pool)) return done
    const before = ConditionSet.of(claim, nodeClaimConditions)
    const failures: unknown[] = []
    const drifted = await this.#drifted(claim, pool, before, signal).catch((error: unknown) => {
      failures.push(error)
      return before
    })
    const { conditions, requeueMs } = this.#consolidatable(claim, pool, drifted)
    if (conditions !== before) {
      try {
        await client.patch(
          karpenterKinds.nodeClaim,
          { name },
          { status: { conditions: conditions.conditions } },
          {
            subresource: 'status',
            isAnswerUnread: true,
            resourceVersion: claim.metadata.resourceVersion ?? '',
          },
        )
      } catch (error) {
        if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
        if (!isKubeError(error, 'notFound')) throw error
      }
    }
    if (failures.length > 0) throw failures[0]
    return { kind: 'after', delayMs: Math.min(requeueMs, this.#deps.settings.driftPeriodMs) }
  }

  async #drifted(
    claim: NodeClaim,
    pool: NodePool,
    conditions: ConditionSet,
    signal: AbortSignal,
  ): Promise<ConditionSet> {
    if (!conditions.isTrue('Launched')) return conditions.clear('Drifted')
    const reason =
      staticDrift(claim, pool) ??
      (await this.#instanceTypes.reasonFor(claim, pool, signal)) ??
      (await this.#providerDrift(claim, signal, conditions.get('Drifted')?.reason))
    if (reason === undefined) return conditions.clear('Drifted')
    return conditions.set(
      { type: 'Drifted', status: 'True', reason, message: reason },
      this.#deps.clock.now(),
    )
  }

  /** @param before what holds on while the cloud does not know the instance. */
  async #providerDrift(
    claim: NodeClaim,
    signal: AbortSignal,
    before: string | undefined,
  ): Promise<string | undefined> {
    try {
      return await this.#deps.provider.isDrifted(claim, signal)
    } catch (error) {
      if (isProviderError(error, 'nodeClaimNotFound')) return before
      throw error
    }
  }

  #consolidatable(
    claim: NodeClaim,
    pool: NodePool,
    conditions: ConditionSet,
  ): { readonly conditions: ConditionSet; readonly requeueMs: number } {
    const none = Number.POSITIVE_INFINITY
    if (pool.spec.replicas !== undefined) return { conditions, requeueMs: none }
    const now = this.#deps.clock.now()
    const waitMs = consolidateAfterMs(pool)
    if (!Number.isFinite(waitMs) || !conditions.isTrue('Initialized')) {
      return { conditions: conditions.clear('Consolidatable'), requeueMs: none }
    }
    const initialized = conditions.get('Initialized')?.lastTransitionTime ?? ''
    const since = Date.parse(claim.status?.lastPodEventTime ?? initialized)
    const leftMs = since + waitMs - now
    if (waitMs > 0 && leftMs > 0) return { conditions: conditions.clear('Consolidatable'), requeueMs: leftMs }
    return { conditions: conditions.set({ type: 'Consolidatable', status: 'True' }, now), requeueMs: none }
  }
}

/**
 * A claim's conditions once a pod has come to its node or left it just now, where that makes a difference:
 * Consolidatable goes until the node has been at rest again for as long as its NodePool wants.
 */
export function conditionsAfterPodEvent(
  { nodePools }: Pick<Caches, 'nodePools'>,
  claim: NodeClaim,
): readonly Condition[] | undefined {
  const pool = nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
  if (pool === undefined || pool.spec.replicas !== undefined) return undefined
  if (claim.metadata.deletionTimestamp !== undefined || consolidateAfterMs(pool) === 0) return undefined
  const before = ConditionSet.of(claim, nodeClaimConditions)
  const after = before.clear('Consolidatable')
  return after === before ? undefined : after.conditions
}

/** Counters and conditions of a NodePool say nothing about its claims, each of which would ask the cloud. */
function mayCauseDrift(change: Change<NodePool>): boolean {
  if (change.kind !== 'updated') return true
  const { object, old } = change
  return (
    !isSameValue(object.spec, old.spec) || !isSameValue(object.metadata.annotations, old.metadata.annotations)
  )
}
