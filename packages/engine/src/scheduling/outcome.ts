/** From placed pods to the result of a simulation: claims, placements, and why the other pods cannot be scheduled. */
import type { PodReason } from '../reasons/reasons.ts'
import { compareText } from '../input/compare-text.ts'
import type { FinishedClaim } from './claims/finished-claims.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import { explain } from './explain.ts'
import type { GroupOutcome } from './pod-groups/group-placing.ts'
import type { PodPlacing } from './pod-placing.ts'
import type { PodShape } from './pods/pod-shape.ts'
import type { SchedulerState } from './scheduler-state.ts'

/** The result of a simulation, by indexes of the problem. */
export interface Outcome {
  readonly claims: readonly FinishedClaim[]
  /** Pods that go to a node, each followed by the index of its node; in order of their UIDs. */
  readonly placements: Int32Array
  /** Pods that cannot be scheduled, with the reason; in order of their UIDs. */
  readonly failures: ReadonlyMap<number, PodReason>
  readonly undecided: readonly number[]
  /** By index of the group; without groups that were not decided. */
  readonly podGroups: ReadonlyMap<number, GroupOutcome>
}

/** Called with each error of an explanation. Undefined: the error is thrown. */
export type OnFault = ((error: unknown) => void) | undefined

/** @param unreadable what is wrong with pods that cannot be read. */
export function outcomeOf(
  placing: PodPlacing,
  state: SchedulerState,
  unreadable: ReadonlyMap<number, string>,
  podGroups: Outcome['podGroups'],
  onFault: OnFault,
): Outcome {
  const { compiled } = state
  const { finisher, problem } = compiled
  const byUid = (a: number, b: number) => compareText(problem.uids[a], problem.uids[b])
  const failures = failuresOf(placing, state, unreadable, onFault)
  const claims: FinishedClaim[] = []
  for (const claim of placing.claims.all) {
    const { template } = claim.class
    const finished = finisher.finish(claim, compiled.poolIndexOf(template))
    if ('kind' in finished) {
      const { missing } = finished
      const reason: PodReason = { kind: 'truncationBrokeMinValues', nodePool: template.name, missing }
      for (const pod of claim.pods) failures.set(pod, reason)
    } else claims.push({ ...finished, deviceDrivers: placing.claims.devices.driversOf(claim) })
  }
  const placements = new Map(placing.nodeOf)
  // Only pods that must move anyway may count on a node that is still starting.
  if (problem.policy.simulation === 'disruption') {
    for (const pod of prematurelyPlaced(placing, compiled)) {
      const node = problem.nodes[placements.get(pod) ?? -1]?.name ?? ''
      placements.delete(pod)
      failures.set(pod, { kind: 'uninitializedNode', node })
    }
  }
  const firstUid = ({ pods }: FinishedClaim) => problem.uids[pods[0] ?? -1]
  return {
    claims: claims.toSorted(
      (a, b) => compareText(a.nodePool, b.nodePool) || compareText(firstUid(a), firstUid(b)),
    ),
    placements: Int32Array.from([...placements].toSorted(([a], [b]) => byUid(a, b)).flat()),
    failures: new Map([...failures].toSorted(([a], [b]) => byUid(a, b))),
    undecided: placing.undecided.toSorted(byUid),
    podGroups,
  }
}

/** Pods on nodes that are not initialized, without those that lose their node anyway (scheduling.md 14). */
export function prematurelyPlaced({ nodeOf }: PodPlacing, compiled: CompiledProblem): readonly number[] {
  const { nodes } = compiled.problem
  return [...nodeOf].flatMap(([pod, index]) =>
    nodes[index]?.initialized === false && compiled.shapeOf(pod).origin !== 'deleting' ? [pod] : [],
  )
}

/** Why pods of this shape cannot be scheduled now. */
export function reasonOf(
  shape: PodShape,
  placing: PodPlacing,
  { compiled, topology }: SchedulerState,
  onFault: OnFault,
): PodReason {
  if (shape.usesResourceClaims) return { kind: 'resourceClaims' }
  if (compiled.problem.pools.length === 0) return { kind: 'noPools' }
  const { nextHost, budgets } = placing.claims
  try {
    return explain(leastDemanding(shape), nextHost, { compiled, topology, budgets })
  } catch (error) {
    if (onFault === undefined) throw error
    onFault(error)
    return { kind: 'unexplained' }
  }
}

/** The shape after its last relaxation. */
export function leastDemanding(shape: PodShape): PodShape {
  let last = shape
  for (let next = shape.relaxed(); next !== undefined; next = next.relaxed()) last = next
  return last
}

function failuresOf(
  placing: PodPlacing,
  state: SchedulerState,
  unreadable: ReadonlyMap<number, string>,
  onFault: OnFault,
): Map<number, PodReason> {
  const failures = new Map<number, PodReason>()
  for (const [pod, problem] of unreadable) failures.set(pod, { kind: 'malformed', problem })
  // Alike pods fail for one reason.
  const reasons = new Map<PodShape | PodReason, PodReason>()
  for (const [pod, failure] of placing.failures) {
    let reason = reasons.get(failure)
    if (reason === undefined) {
      reason =
        'kind' in failure
          ? placing.claims.devices.detailed(failure)
          : reasonOf(failure, placing, state, onFault)
      reasons.set(failure, reason)
    }
    failures.set(pod, reason)
  }
  return failures
}
