/** Reserves the share of NodePool limits that the claims of a decision take. */
import { type NodePool, parseResources, type Resources } from '@tenon/api'
import { type DeferredClaim, exceededLimit, type NewClaim } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Exceeded, LimitReservation } from '../state/nodepools/limit-reservations.ts'
import { poolUsage } from '../state/nodepools/pool-usage.ts'
import { pauseSentence } from '../state/pause.ts'
import { podList } from '../text.ts'
import { exceededBy, type Overtaken } from './overtaken.ts'

interface Pools {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'brake' | 'limitReservations' | 'parsed' | 'quotas' | 'stateNodes'>
  readonly logger: Logger
}

export interface ReservedClaim {
  readonly claim: NewClaim
  /** The NodePool at that time. */
  readonly usage: Resources
  readonly reservation: LimitReservation
}

/** A claim that may not be created any more. That is no error: the next pass decides again. */
export interface OvertakenClaim {
  readonly claim: NewClaim
  readonly by: Overtaken
}

interface Reservations {
  readonly reserved: readonly ReservedClaim[]
  readonly overtaken: readonly OvertakenClaim[]
}

/** Reserves for all claims at once, as others may be launched meanwhile. @returns those within the limits. */
export function reserveLimits(pools: Pools, claims: readonly NewClaim[]): Reservations {
  const { caches, state } = pools
  const nodes = state.stateNodes()
  const reserved: ReservedClaim[] = []
  const overtaken: OvertakenClaim[] = []
  /** Groups of pods of which a claim is refused. */
  const refused = new Map<string, Overtaken>()
  for (const claim of claims) {
    const { largest, nodePool } = claim
    const pool = caches.nodePools.get({ name: nodePool })
    if (pool === undefined) {
      overtaken.push({ claim, by: { kind: 'poolGone', nodePool } })
      continue
    }
    const usage = poolUsage(nodePool, nodes, state.parsed)
    const counting = state.quotas.countingDecided(claim)
    const reservation = state.limitReservations.take({ pool, usage, largest, quotas: counting })
    if ('kind' in reservation) {
      overtaken.push(...waiting(pools, claim, reservation))
      for (const group of claim.podGroups ?? []) refused.set(group, exceededBy(nodePool, reservation))
    } else reserved.push({ claim, usage, reservation })
  }
  return withWholeGroups(pools, { reserved, overtaken }, refused)
}

/** A group of pods gets all of its claims or none (gangs.md 7.2). */
function withWholeGroups(
  { state }: Pools,
  { reserved, overtaken }: Reservations,
  refused: Map<string, Overtaken>,
): Reservations {
  const by = ({ podGroups = [] }: NewClaim) =>
    podGroups.map((group) => refused.get(group)).find((each) => each !== undefined)
  let kept = reserved
  const all = [...overtaken]
  for (let before = -1; before !== kept.length; ) {
    before = kept.length
    kept = kept.filter(({ claim, reservation }) => {
      const because = by(claim)
      if (because === undefined) return true
      state.limitReservations.giveBack(reservation)
      for (const group of claim.podGroups ?? []) refused.set(group, because)
      all.push({ claim, by: because })
      return false
    })
  }
  return { reserved: kept, overtaken: all }
}

/**
 * Lets the pods of deferred claims wait: other claims have reserved what is left of a limit.
 * @returns claims whose wait is over, as the other claims have ended.
 */
export function waitForLimits(pools: Pools, deferred: readonly DeferredClaim[]): readonly OvertakenClaim[] {
  return deferred.flatMap(({ claim, because }) => {
    switch (because.kind) {
      case 'limitReserved':
        return waiting(pools, claim, { kind: 'limit', resource: because.limit })
      case 'quotaReserved':
        return waiting(pools, claim, { kind: 'quota', quota: because.quota, resource: because.limit })
      case 'offeringsOnTrial':
        return []
    }
  })
}

/** The pods are scheduled again once the claims on their way are launched or gone. */
function waiting(
  { logger, state: { limitReservations } }: Pools,
  claim: NewClaim,
  exceeded: Exceeded,
): readonly OvertakenClaim[] {
  const { nodePool, pods } = claim
  const isReserved =
    exceeded.kind === 'limit' ? limitReservations.want(nodePool) : limitReservations.wantQuota(exceeded.quota)
  if (!isReserved) return [{ claim, by: exceededBy(nodePool, exceeded) }]
  const whose =
    exceeded.kind === 'limit' ? { NodePool: { name: nodePool } } : { CapacityQuota: { name: exceeded.quota } }
  logger.info('nodes that are being launched use the rest of a limit; the pods wait', {
    ...whose,
    limit: exceeded.resource,
    Pods: podList(pods),
  })
  return []
}

/** The NodePool of a claim; its reservation is given back if limits were lowered or the NodePool was paused meanwhile. */
export function poolWithinLimits(
  { caches, state }: Pools,
  { claim: { nodePool }, usage, reservation }: ReservedClaim,
): { readonly kind: 'within'; readonly pool: NodePool } | Overtaken {
  const pool = caches.nodePools.get({ name: nodePool })
  const exceeded = pool && exceededLimit(parseResources(pool.spec.limits), [usage])
  const pause = state.brake.holding(nodePool, 'launches')
  if (pool !== undefined && exceeded === undefined && pause === undefined) return { kind: 'within', pool }
  state.limitReservations.giveBack(reservation)
  if (pause !== undefined) return { kind: 'paused', nodePool, because: pauseSentence(pause) }
  return exceeded === undefined
    ? { kind: 'poolGone', nodePool }
    : { kind: 'limitExceeded', nodePool, limit: exceeded }
}
