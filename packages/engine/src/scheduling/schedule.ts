/** Schedules the pods of an input: objects in, objects out. */
import type { Pod } from '@tenon/api'
import type { SchedulingInput } from '../input/input.ts'
import { type Problem, problemOf } from './problem/problem.ts'
import type {
  RoomResult,
  Failure,
  NewClaim,
  Placement,
  PodGroupResult,
  SchedulingResult,
} from '../input/result.ts'
import { finished } from '../steps.ts'
import { isRoom, newClaim } from './claims/new-claim.ts'
import { launchableClaims } from './claims/launchable-claims.ts'
import { type Solution, solve } from './solver.ts'
import type { SchedulingControl } from './pace.ts'

const untilDone: SchedulingControl = { shouldStop: () => false }

/**
 * Decides for every pod of the input. Equal input gives equal output, whatever its order.
 * @param control may stop the decision early; pods that were not decided then are listed as such.
 */
export function schedule(input: SchedulingInput, control: SchedulingControl = untilDone): SchedulingResult {
  const problem = problemOf(input)
  return finished(resultInSteps(input, problem, solve(problem, control)))
}

/** Claims between two yields of {@link resultInSteps}. */
const claimsPerStep = 500

/** Turns indexes back into objects; yields after a bounded amount of work, so that the event loop can run. */
export function* resultInSteps(
  input: SchedulingInput,
  { shapeOf, podGroups }: Problem,
  solution: Solution,
): Generator<undefined, SchedulingResult, undefined> {
  const { pods, nodes } = input
  const placements: Placement[] = []
  for (let i = 0; i < solution.placements.length; i += 2) {
    const pod = pods[solution.placements[i] as number]
    const name = nodes[solution.placements[i + 1] as number]?.name
    if (pod !== undefined && name !== undefined) placements.push({ pod, node: name })
  }
  yield
  const failures: Failure[] = []
  for (const [index, reason] of solution.failures) {
    const pod = pods[index]
    if (pod !== undefined) failures.push({ pod, reason })
  }
  yield
  const podsAt = (indexes: readonly number[]) =>
    indexes.map((index) => pods[index]).filter((pod) => pod !== undefined)
  const planned: NewClaim[] = []
  const groupOf = groupsOfHeld(podGroups, solution)
  for (const [done, finishedClaim] of solution.claims.entries()) {
    const claim = newClaim(input, finishedClaim)
    if (claim !== undefined) planned.push(withGroups(claim, finishedClaim.pods, groupOf))
    if (done % claimsPerStep === claimsPerStep - 1) yield
  }
  const undecided = podsAt(solution.undecided)
  yield
  return {
    ...(yield* launchableClaims(input, planned)),
    ...withoutRoom(input, { placements, failures, undecided }),
    poolsWithoutTypes: solution.poolsWithoutTypes,
    malformed: solution.malformed,
    validZones: zonesByPod(pods, shapeOf, solution.validZones),
    pricePerHour: solution.pricePerHour,
    firstFitPricePerHour: solution.firstFitPricePerHour,
    faults: solution.faults,
    ...(podGroups.length > 0 && { podGroups: groupResults(podGroups, solution) }),
  }
}

/** Ids of the groups whose minimum depends on each of these pods; pods and groups by index. */
function groupsOfHeld(
  groups: Problem['podGroups'],
  { podGroups }: Pick<Solution, 'podGroups'>,
): ReadonlyMap<number, string> {
  const byPod = new Map<number, string>()
  for (const [index, outcome] of podGroups) {
    const id = groups[index]?.id
    if (outcome.kind === 'placed' && id !== undefined) for (const pod of outcome.held) byPod.set(pod, id)
  }
  return byPod
}

function withGroups(
  claim: NewClaim,
  pods: readonly number[],
  groupOf: ReadonlyMap<number, string>,
): NewClaim {
  if (groupOf.size === 0) return claim
  const ids = new Set(pods.flatMap((pod) => groupOf.get(pod) ?? []))
  return ids.size === 0 ? claim : { ...claim, podGroups: [...ids].toSorted() }
}

function groupResults(
  groups: Problem['podGroups'],
  { podGroups }: Pick<Solution, 'podGroups'>,
): readonly PodGroupResult[] {
  return groups.flatMap(({ id, index }): readonly PodGroupResult[] => {
    const outcome = podGroups.get(index)
    if (outcome === undefined) return []
    if (outcome.kind === 'refused') return [{ kind: 'refused', id, reason: outcome.reason }]
    const { domain } = outcome
    return [{ kind: 'placed', id, ...(domain !== undefined && { domain }) }]
  })
}

/** Splits placeholder pods from all others. */
function withoutRoom(
  { pods, origins }: Pick<SchedulingInput, 'pods' | 'origins'>,
  all: RoomResult,
): RoomResult & Pick<SchedulingResult, 'room'> {
  const standsForRoom = (pod: Pod) => isRoom(pod, origins)
  // Placeholder pods on claims are listed there. Absent if there are none at all.
  if (origins === undefined || !pods.some(standsForRoom)) return all
  const { placements, failures, undecided } = all
  return {
    placements: placements.filter(({ pod }) => !standsForRoom(pod)),
    failures: failures.filter(({ pod }) => !standsForRoom(pod)),
    undecided: undecided.filter((pod) => !standsForRoom(pod)),
    room: {
      placements: placements.filter(({ pod }) => standsForRoom(pod)),
      failures: failures.filter(({ pod }) => standsForRoom(pod)),
      undecided: undecided.filter(standsForRoom),
    },
  }
}

function zonesByPod(
  pods: readonly Pod[],
  shapeOf: Int32Array,
  zonesOfShape: Solution['validZones'],
): ReadonlyMap<Pod, ReadonlySet<string>> {
  if (zonesOfShape.size === 0) return new Map()
  const sets = new Map([...zonesOfShape].map(([shape, zones]) => [shape, new Set(zones)]))
  const byPod = new Map<Pod, ReadonlySet<string>>()
  for (const [index, pod] of pods.entries()) {
    const zones = sets.get(shapeOf[index] as number)
    if (zones !== undefined) byPod.set(pod, zones)
  }
  return byPod
}
