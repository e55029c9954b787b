/**
 * Assigns equal pods to claims in the order in which kube-scheduler tries them, so that their spread
 * constraints refuse none of them (planned-placement.md).
 */
import { compareResourceVersions, controllerOf, labels, type Pod, type Requirement } from '@tenon/api'
import type { NewClaim } from '../../input/result.ts'
import { interchangeKey } from '../pods/interchangeable.ts'
import { hardSpreadOf } from '../topology/hard-spread.ts'

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
 * Swaps the pods of one owner that must spread: those that kube-scheduler tries first get the first slots of
 * their domains. It tries pods in the order in which it last refused them, and a pod whose nomination exceeds
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
