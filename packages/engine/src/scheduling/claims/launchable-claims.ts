/** Which claims of a plan are created now, and which wait for a later pass (scheduling.md 10, 12). */
import { type InstanceType, parseResources, type Resources, sum } from '@tenon/api'
import type { SchedulingInput } from '../../input/input.ts'
import type { DeferredClaim, NewClaim, SchedulingResult } from '../../input/result.ts'
import { offeringsOf, scopeKey, scopesOf } from '../types/claim-offerings.ts'
import { exceededLimit } from './limits.ts'
import { inSchedulerOrder } from './scheduler-order.ts'

/** Launches in progress, and the policy. */
type LaunchInput = Pick<SchedulingInput, 'pools' | 'policy' | 'offeringsOnTrial'>

type Steps<T> = Generator<undefined, T, undefined>

/** Returns the claims to create with their pods; yields after each claim. */
export function* launchableClaims(given: LaunchInput, planned: readonly NewClaim[]): Steps<Launchable> {
  const deferred: DeferredClaim[] = []
  const uncrowded = yield* withoutCrowds(given, planned, deferred)
  const inTurn = given.policy.improvement === 'planned' ? yield* inSchedulerOrder(uncrowded) : uncrowded
  return withWholeGroups({ claims: withinLimits(given.pools, inTurn, deferred), deferred })
}

type Launchable = Pick<SchedulingResult, 'claims' | 'deferred'>

/** Defers all claims of a pod group if one of them is deferred (gangs.md 7.2). */
function withWholeGroups({ claims, deferred }: Launchable): Launchable {
  const waiting = new Map<string, DeferredClaim['because']>()
  const note = ({ claim, because }: DeferredClaim) => {
    for (const group of claim.podGroups ?? []) if (!waiting.has(group)) waiting.set(group, because)
  }
  for (const each of deferred) note(each)
  const all = [...deferred]
  let kept = claims
  for (let before = -1; before !== all.length; ) {
    before = all.length
    kept = kept.filter((claim) => {
      const group = claim.podGroups?.find((id) => waiting.has(id))
      if (group === undefined) return true
      const held: DeferredClaim = { claim, because: waiting.get(group) as DeferredClaim['because'] }
      all.push(held)
      note(held)
      return false
    })
  }
  return { claims: kept, deferred: all }
}

/**
 * Keeps the first of the claims that need the same offerings on trial: if it fails, all others would fail too.
 */
function* withoutCrowds(
  { pools, policy, offeringsOnTrial = [] }: LaunchInput,
  claims: readonly NewClaim[],
  deferred: DeferredClaim[],
): Steps<readonly NewClaim[]> {
  if (offeringsOnTrial.length === 0) return claims
  const onTrial = new Set(offeringsOnTrial.map(scopeKey))
  const typesOf = new Map<string, readonly InstanceType[]>(
    pools.map(({ nodePool, instanceTypes }) => [nodePool.metadata.name, instanceTypes]),
  )
  const { reservations, wellKnownLabels } = policy
  const wellKnown = new Set([...wellKnownLabels, ...(reservations === undefined ? [] : [reservations.label])])
  const tried = new Set<string>()
  const kept: NewClaim[] = []
  for (const claim of claims) {
    yield
    const offerings = offeringsOf(claim.requirements, typesOf.get(claim.nodePool) ?? [], wellKnown)
    const { nodeClassRef } = claim.pool.spec.template.spec
    const trials = offerings.map(({ ref }) =>
      scopesOf(ref, { nodePool: claim.nodePool, nodeClassRef })
        .map(scopeKey)
        .filter((key) => onTrial.has(key)),
    )
    const isTrial = trials.length > 0 && trials.every((keys) => keys.length > 0)
    const keys = trials.flat()
    // A pod group that has no other offerings tries them with all its claims, as some of them would be of no use.
    if (isTrial && claim.podGroups === undefined && keys.some((key) => tried.has(key))) {
      deferred.push({ claim, because: { kind: 'offeringsOnTrial' } })
      continue
    }
    if (isTrial) for (const key of keys) tried.add(key)
    kept.push(claim)
  }
  return kept
}

/** Defers claims that exceed the limits of their NodePool together with what other claims have reserved. */
function withinLimits(
  pools: LaunchInput['pools'],
  claims: readonly NewClaim[],
  deferred: DeferredClaim[],
): readonly NewClaim[] {
  const byName = new Map(pools.map((pool) => [pool.nodePool.metadata.name, pool]))
  const taken = new Map<string, Resources>()
  const limitsOf = new Map<string, Resources>()
  return claims.filter((claim) => {
    const { largest, nodePool, pool } = claim
    // Parsed only for NodePools with a claim: the limits of others may be invalid.
    const limits = limitsOf.get(nodePool) ?? parseResources(pool.spec.limits)
    limitsOf.set(nodePool, limits)
    const { usage = {}, reserved = {} } = byName.get(nodePool) ?? {}
    const amounts = taken.get(nodePool) ?? sum(usage, reserved)
    const limit = exceededLimit(limits, [amounts, largest])
    if (limit === undefined) taken.set(nodePool, sum(amounts, largest))
    else deferred.push({ claim, because: { kind: 'limitReserved', limit } })
    return limit === undefined
  })
}
