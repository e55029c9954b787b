/** Which claims of a plan are created now, and which wait for a later pass (scheduling.md 10, 12). */
import {
  compareResourceVersions,
  controllerOf,
  type InstanceType,
  labels,
  ownValue,
  parseResources,
  type Pod,
  type Requirement,
  type Resources,
  sum,
} from '@tenon/api'
import type { QuotaInput, SchedulingInput } from '../../input/input.ts'
import type { DeferredClaim, Deferral, NewClaim, SchedulingResult } from '../../input/result.ts'
import { offeringsOf, scopeKey, scopesOf } from '../types/claim-offerings.ts'
import { interchangeKey } from '../pods/interchangeable.ts'
import { hardSpreadOf } from '../topology/hard-spread.ts'

/** Launches in progress, and the policy. */
type LaunchInput = Pick<SchedulingInput, 'pools' | 'policy' | 'offeringsOnTrial' | 'quotas'>

type Steps<T> = Generator<undefined, T, undefined>

/** Returns the claims to create with their pods; yields after each claim. */
export function* launchableClaims(given: LaunchInput, planned: readonly NewClaim[]): Steps<Launchable> {
  const deferred: DeferredClaim[] = []
  const uncrowded = yield* withoutCrowds(given, planned, deferred)
  const inTurn = given.policy.improvement === 'planned' ? yield* inSchedulerOrder(uncrowded) : uncrowded
  return withWholeGroups({ claims: withinLimits(given, inTurn, deferred), deferred })
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

/** Defers claims that exceed the limits of their NodePool or a quota together with what other claims have reserved. */
function withinLimits(
  { pools, quotas = [] }: LaunchInput,
  claims: readonly NewClaim[],
  deferred: DeferredClaim[],
): readonly NewClaim[] {
  const takenOf = new Map(quotas.map(({ name, usage, reserved = {} }) => [name, sum(usage, reserved)]))
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
    const counting = quotas.filter(({ name }) => claim.quotas?.includes(name))
    const limit = exceededLimit(limits, [amounts, largest])
    const because: Deferral | undefined =
      limit === undefined ? quotaDeferral(counting, takenOf, largest) : { kind: 'limitReserved', limit }
    if (because !== undefined) {
      deferred.push({ claim, because })
      return false
    }
    taken.set(nodePool, sum(amounts, largest))
    for (const { name } of counting) takenOf.set(name, sum(takenOf.get(name) ?? {}, largest))
    return true
  })
}

function quotaDeferral(
  quotas: readonly QuotaInput[],
  takenOf: ReadonlyMap<string, Resources>,
  largest: Resources,
): Deferral | undefined {
  for (const { limits, name } of quotas) {
    const limit = exceededQuota(limits, [takenOf.get(name) ?? {}], largest)
    if (limit !== undefined) return { kind: 'quotaReserved', quota: name, limit }
  }
  return undefined
}

/**
 * The first resource that the addition has and whose amounts would exceed the limit of a quota; undefined if there is
 * none. What a node does not have may exceed its limit already.
 */
export function exceededQuota(
  limits: Resources,
  amounts: readonly Resources[],
  addition: Resources,
): string | undefined {
  const added = Object.entries(limits).filter(([name]) => (ownValue(addition, name) ?? 0) > 0)
  return exceededLimit(Object.fromEntries(added), [...amounts, addition])
}

/** The first resource whose amounts exceed its limit together; undefined if there is none. */
export function exceededLimit(limits: Resources, amounts: readonly Resources[]): string | undefined {
  const total = (name: string) => amounts.reduce((used, each) => used + (ownValue(each, name) ?? 0), 0)
  return Object.entries(limits).find(([name, limit]) => total(name) > limit)?.[0]
}

/** The parts of a claim that matter here. */
type SpreadClaim = Pick<NewClaim, 'pods' | 'requirements'>

/** The claim and domain of a pod in a plan. */
interface Slot {
  readonly pod: Pod
  /** The number of pods of its group that the plan puts into the same domain before it. */
  readonly level: number
}

interface Group {
  readonly slots: Slot[]
  /** The number of pods of the group in each domain so far. */
  readonly levels: Map<string, number>
}

/**
 * Swaps the pods of one owner that must spread (planned-placement.md): those that kube-scheduler tries first get the first
 * slots of their domains. It tries pods in the order in which it last refused them, and a pod whose nomination exceeds
 * `maxSkew` at that moment loses it.
 */
export function* inSchedulerOrder<T extends SpreadClaim>(
  claims: readonly T[],
): Generator<undefined, readonly T[], undefined> {
  const turns = yield* swapsOf(claims)
  if (turns.size === 0) return claims
  return claims.map((claim) => {
    if (!claim.pods.some((pod) => turns.has(pod))) return claim
    return { ...claim, pods: claim.pods.map((pod) => turns.get(pod) ?? pod) }
  })
}

/** Which pod takes the slot of which other pod. */
function* swapsOf(claims: readonly SpreadClaim[]): Generator<undefined, ReadonlyMap<Pod, Pod>, undefined> {
  const groups = new Map<string, Group>()
  for (const [index, claim] of claims.entries()) {
    for (const pod of claim.pods) {
      const topologyKey = hardSpreadOf(pod)[0]?.topologyKey
      if (topologyKey === undefined || controllerOf(pod) === undefined) continue
      yield
      const key = interchangeKey(pod)
      const group: Group = groups.get(key) ?? { slots: [], levels: new Map() }
      groups.set(key, group)
      const domain = domainOf(claim, topologyKey) ?? String(index)
      const level = group.levels.get(domain) ?? 0
      group.levels.set(domain, level + 1)
      group.slots.push({ pod, level })
    }
  }
  const turns = new Map<Pod, Pod>()
  for (const { slots } of groups.values()) {
    const queue = slots.map(({ pod }) => pod).toSorted(inQueueOrder)
    for (const [turn, { pod }] of slots.toSorted((a, b) => a.level - b.level).entries())
      turns.set(pod, queue[turn] ?? pod)
  }
  return turns
}

/** Undefined if each node is its own domain, or the domain is not decided yet. */
function domainOf({ requirements }: SpreadClaim, topologyKey: string): string | undefined {
  if (topologyKey === labels.hostname) return undefined
  const single = requirements.find(
    ({ key, operator, values }: Requirement) =>
      key === topologyKey && operator === 'In' && values?.length === 1,
  )
  return single?.values?.[0]
}

/** The last change of a pod that is not nominated yet is its refusal by kube-scheduler. */
function inQueueOrder(a: Pod, b: Pod): number {
  const [first, second] = [a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? '']
  return (b.spec.priority ?? 0) - (a.spec.priority ?? 0) || (compareResourceVersions(first, second) ?? 0)
}
