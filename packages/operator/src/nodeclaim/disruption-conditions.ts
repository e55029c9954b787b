import {
  capacityTypes,
  type Condition,
  ConditionSet,
  type InstanceType,
  karpenterKinds,
  labels,
  type NewCondition,
  type NodeClaim,
  type NodePool,
  wellKnownLabels,
} from '@tenon/api'
import {
  compatible,
  labelRequirements,
  oneOf,
  parseRequirements,
  type Requirements,
  requirementsOf,
} from '@tenon/engine'
import { type Change, done } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import type { Kubernetes } from '../kubernetes.ts'
import { patchStatus } from '../patch-status.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { nodeClaimConditions } from '../state/conditions.ts'
import { consolidateAfterMs } from '../state/nodepools/managed-pool.ts'
import { isUnreadable } from '../state/readable.ts'
import { isSameValue } from '../state/same-value.ts'
import { expiryOf } from './expiry.ts'
import { staticDrift } from './static-drift.ts'
import type { PoolWishes } from '../state/nodepools/pool-annotations.ts'

/** On a NodePool, written during rollouts: how many of its nodes are updated, such as `12/40`. */
export const nodesUpdatedAnnotation = 'tenon.sh/nodes-updated'
/** Of condition Drifted: only the age of the claim is out of date. */
export const expiredReason = 'Expired'

/**
 * `nodeclaim.disruption`: keeps the conditions Drifted and Consolidatable of NodeClaims (lifecycle.md 9).
 * @param periodMs how often the provider is asked for drift of a claim that does not change.
 */
export function disruptionConditions(
  { client, caches }: Kubernetes,
  state: ClusterState,
  provider: CloudProvider,
  clock: Clock,
  periodMs: number,
): ControllerSpec {
  const instanceTypes = new InstanceTypeDrift(provider, clock)
  const drifted = async (
    claim: NodeClaim,
    pool: NodePool,
    conditions: ConditionSet,
    signal: AbortSignal,
  ): Promise<ConditionSet> => {
    if (!conditions.isTrue('Launched')) return conditions.clear('Drifted')
    const reason =
      staticDrift(claim, pool) ??
      (await instanceTypes.reasonFor(claim, pool, signal)) ??
      (await provider.isDrifted(claim, signal).catch((error: unknown) => {
        // An instance that the cloud does not know is as drifted as before.
        if (isProviderError(error, 'nodeClaimNotFound')) return conditions.get('Drifted')?.reason
        throw error
      }))
    if (reason !== undefined)
      return conditions.set({ type: 'Drifted', status: 'True', reason, message: reason }, clock.now())
    const expired = expiredCondition(claim, state.poolWishes(pool), clock.now())
    return expired === undefined ? conditions.clear('Drifted') : conditions.set(expired, clock.now())
  }
  return {
    name: 'nodeclaim.disruption',
    concurrency: { least: 10, most: 1000 },
    watch(enqueue) {
      const { nodeClaims, nodePools, nodeClasses } = caches
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
    },
    async reconcile(name, signal) {
      const claim = caches.nodeClaims.get({ name })
      if (claim === undefined || claim.metadata.deletionTimestamp !== undefined || !state.isManaged(claim))
        return done
      const pool = caches.nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
      if (pool === undefined || isUnreadable(pool)) return done
      const before = ConditionSet.of(claim, nodeClaimConditions)
      const failures: unknown[] = []
      // Consolidatable does not depend on the cloud, so it is kept up to date while the cloud fails.
      const afterDrift = await drifted(claim, pool, before, signal).catch((error: unknown) => {
        failures.push(error)
        return before
      })
      const { conditions, requeueMs } = consolidatable(claim, pool, afterDrift, clock.now())
      if (conditions !== before) {
        const status = { conditions: conditions.conditions }
        const options = { isAnswerUnread: true }
        const outcome = await patchStatus(client, karpenterKinds.nodeClaim, claim, status, options)
        if (outcome === 'conflict') return { kind: 'backoff' }
      }
      if (failures.length > 0) throw failures[0]
      const expiresMs = expiryOf(claim, state.poolWishes(pool)).atMs - clock.now()
      const expiryMs = expiresMs > 0 ? expiresMs : periodMs
      return { kind: 'after', delayMs: Math.min(requeueMs, periodMs, expiryMs) }
    },
  }
}

/** With soft expiration an expired claim counts as drifted. */
function expiredCondition(claim: NodeClaim, wishes: PoolWishes, nowMs: number): NewCondition | undefined {
  const { atMs, forcedMs } = expiryOf(claim, wishes)
  if (wishes.expiration === undefined || atMs > nowMs) return undefined
  const end = Number.isFinite(forcedMs)
    ? `it is deleted by force at ${rfc3339(forcedMs)}`
    : 'it is not deleted by force'
  return {
    type: 'Drifted',
    status: 'True',
    reason: expiredReason,
    message: `It expired at ${rfc3339(atMs)} and is replaced as budgets, PodDisruptionBudgets and do-not-disrupt allow; ${end}`,
  }
}

function consolidatable(
  claim: NodeClaim,
  pool: NodePool,
  conditions: ConditionSet,
  nowMs: number,
): { readonly conditions: ConditionSet; readonly requeueMs: number } {
  const none = Number.POSITIVE_INFINITY
  if (pool.spec.replicas !== undefined) return { conditions, requeueMs: none }
  const waitMs = consolidateAfterMs(pool)
  if (!Number.isFinite(waitMs) || !conditions.isTrue('Initialized')) {
    return { conditions: conditions.clear('Consolidatable'), requeueMs: none }
  }
  const initialized = conditions.get('Initialized')?.lastTransitionTime ?? ''
  const since = Date.parse(claim.status?.lastPodEventTime ?? initialized)
  const leftMs = since + waitMs - nowMs
  if (waitMs > 0 && leftMs > 0) return { conditions: conditions.clear('Consolidatable'), requeueMs: leftMs }
  return { conditions: conditions.set({ type: 'Consolidatable', status: 'True' }, nowMs), requeueMs: none }
}

/**
 * The conditions of a claim after a pod was added to its node or removed from it, if that changes them: Consolidatable
 * is cleared until `consolidateAfter` has passed again.
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

/** Whether claims must be checked again, which costs a request to the cloud each; status changes do not matter. */
function mayCauseDrift(change: Change<NodePool>): boolean {
  if (change.kind !== 'updated') return true
  const { object, old } = change
  const annotationsOf = ({ metadata }: NodePool) => ({
    ...metadata.annotations,
    [nodesUpdatedAnnotation]: undefined,
  })
  return !isSameValue(object.spec, old.spec) || !isSameValue(annotationsOf(object), annotationsOf(old))
}

/** Offerings that come and go while many instances are launched do not make young claims drift. */
const leastAgeMs = 60 * 60_000
const foundTtlMs = 30 * 60_000

/** Drift of claims whose instance type is not offered any more. */
export class InstanceTypeDrift {
  readonly #provider: Pick<CloudProvider, 'getInstanceTypes' | 'reservationLabel' | 'wellKnownLabels'>
  readonly #clock: Clock
  /** Until when a claim's type is not checked again, by claim UID; earliest first. */
  readonly #foundUntilMs = new Map<string, number>()

  constructor(
    provider: Pick<CloudProvider, 'getInstanceTypes' | 'reservationLabel' | 'wellKnownLabels'>,
    clock: Clock,
  ) {
    this.#provider = provider
    this.#clock = clock
  }

  async reasonFor(claim: NodeClaim, pool: NodePool, signal: AbortSignal): Promise<string | undefined> {
    const now = this.#clock.now()
    const { uid = '', creationTimestamp = '' } = claim.metadata
    const isYoung = now - Date.parse(creationTimestamp) <= leastAgeMs
    if (isYoung || (this.#foundUntilMs.get(uid) ?? 0) > now) return undefined
    const types = await this.#provider.getInstanceTypes(pool, signal)
    if (!this.#isOffered(claim, types)) return 'InstanceTypeNotFound'
    for (const [each, untilMs] of this.#foundUntilMs) {
      if (untilMs > now) break
      this.#foundUntilMs.delete(each)
    }
    this.#foundUntilMs.delete(uid)
    this.#foundUntilMs.set(uid, now + foundTtlMs)
    return undefined
  }

  #isOffered(claim: NodeClaim, types: readonly InstanceType[]): boolean {
    const { reservationLabel, wellKnownLabels: ofProvider } = this.#provider
    const tags = claim.metadata.labels ?? {}
    const type = types.find(({ name }) => name === tags[labels.instanceType])
    const own = requirementsOfClaim(tags, reservationLabel)
    const mayBeUndefined = new Set([...wellKnownLabels, ...ofProvider])
    if (reservationLabel !== undefined) mayBeUndefined.add(reservationLabel)
    return (
      type?.offerings.some(({ requirements }) =>
        compatible(own, parseRequirements(requirements), mayBeUndefined),
      ) ?? false
    )
  }
}

/** The labels of a claim. When a reservation ends, its instance may stay as an on-demand one. */
function requirementsOfClaim(
  tags: Readonly<Record<string, string>>,
  reservationLabel: string | undefined,
): Requirements {
  const own = labelRequirements(tags)
  if (tags[labels.capacityType] !== capacityTypes.reserved) return own
  return requirementsOf([
    ...[...own.values()].filter(({ key }) => key !== reservationLabel && key !== labels.capacityType),
    oneOf(labels.capacityType, capacityTypes.reserved, capacityTypes.onDemand),
  ])
}
