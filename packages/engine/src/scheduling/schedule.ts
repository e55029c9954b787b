/** Schedules the pods of an input: first fit, and a cheaper plan where the policy asks for one. Objects in, objects out. */
import { type Pod, sumOfPrices } from '@tenon/api'
import type { SchedulingInput } from '../input/input.ts'
import { type Problem, problemOf } from './problem/problem.ts'
import type {
  Failure,
  Fault,
  MalformedObject,
  NewClaim,
  Placement,
  PodGroupResult,
  PoolWithoutTypes,
  RoomResult,
  SchedulingResult,
} from '../input/result.ts'
import { finished } from '../steps.ts'
import { isRoom, newClaim } from './claims/finished-claims.ts'
import { launchableClaims } from './claims/launchable-claims.ts'
import { Interrupted, type SchedulingControl } from './pace.ts'
import type { PodReason } from '../reasons/reasons.ts'
import { CompiledProblem } from './compiled-problem.ts'
import { isCheaper } from './packing/cheaper.ts'
import { PackingCache } from './packing/packing-cache.ts'
import type { Launch } from './topology/node-domains.ts'
import { TypeReader } from './types/instance-rows.ts'
import type { Outcome } from './outcome.ts'
import type { Selection } from './pod-placing.ts'
import { Simulation } from './simulation.ts'

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

/** A decision by indexes of the problem. Plain data. */
export interface Solution extends Outcome {
  readonly poolsWithoutTypes: readonly PoolWithoutTypes[]
  readonly malformed: readonly MalformedObject[]
  /** By index of the shape: the zones that rules about zones allowed before the first placement. */
  readonly validZones: ReadonlyMap<number, readonly string[]>
  readonly pricePerHour: number
  readonly firstFitPricePerHour: number
  readonly faults: readonly Fault[]
}

/** Groups, by index, that are not tried, and why they cannot be scheduled. */
type Barred = ReadonlyMap<number, PodReason>

/** How often a decision is repeated with pods placed ahead of the groups whose nodes they would take. */
const mostRoundsForPodsAhead = 3
/** How often it is repeated without the groups that do not fit beside such pods. */
const mostDisplacements = 8

/** How often a decision is repeated because of topology domains that it opens itself. */
const mostRoundsForOpened = 3

/** Decides for every pod of the problem. */
export function solve(problem: Problem, control: SchedulingControl): Solution {
  try {
    return bindable(problem, control)
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error
    return nothingDecided(problem)
  }
}

function nothingDecided({ shapeOf }: Problem): Solution {
  return {
    claims: [],
    placements: new Int32Array(),
    failures: new Map(),
    undecided: Array.from(shapeOf.keys()),
    podGroups: new Map(),
    poolsWithoutTypes: [],
    malformed: [],
    validZones: new Map(),
    pricePerHour: 0,
    firstFitPricePerHour: 0,
    faults: [],
  }
}

/**
 * Decides so that kube-scheduler binds the pods. It counts a domain for every spread constraint once a node exists there,
 * even if the node was launched for other pods. So a decision that opens a domain is repeated with the domain known from
 * the start (reports-2.md 15).
 */
function bindable(problem: Problem, control: SchedulingControl): Solution {
  const compiled = new CompiledProblem(
    problem,
    control.types ?? new TypeReader(),
    control.packings ?? new PackingCache(),
    control,
  )
  const first = decided(compiled, control, compiled.onTheirWay)
  if (problem.policy.simulation === 'disruption') return first.solution
  try {
    let last = first
    for (let round = 0; !control.shouldStop(); round++) {
      const launches = last.simulation.launches()
      if (last.simulation.predictsDomains(launches)) return last.solution
      if (round === mostRoundsForOpened) break
      last = decided(compiled, control, launches)
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error
  }
  // No decision opens just the domains that it assumes. Pods that wait for their domains are better than pods that never run.
  return first.solution
}

interface Decision {
  readonly solution: Solution
  /** The simulation that it is from. */
  readonly simulation: Simulation
}

function decided(
  compiled: CompiledProblem,
  control: SchedulingControl,
  launches: readonly Launch[],
): Decision {
  const { problem } = compiled
  let barred: Barred = new Map()
  let ahead: ReadonlySet<number> = new Set()
  let placedFirst: ReadonlySet<number> = new Set()
  for (let rounds = 0, displacements = 0; ; ) {
    const { solution, simulation } = solved(compiled, { control, barred, ahead, launches })
    const broken = brokenGroups(problem, solution)
    if (broken.size > 0) {
      barred = new Map([...barred, ...broken])
      continue
    }
    if (ahead.size === 0) placedFirst = placedGroups(solution)
    const displaced = refusedOf(placedFirst, solution)
    const more = simulation.podsOutsideGroups().filter((pod) => !ahead.has(pod))
    if (displaced.size > 0 && displacements < mostDisplacements && !control.shouldStop()) {
      // The other pods go where they go without these groups (gangs.md, GNG-6).
      displacements++
      barred = new Map([...barred, ...displaced])
      ahead = new Set()
    } else if (more.length > 0 && rounds < mostRoundsForPodsAhead && !control.shouldStop()) {
      rounds++
      ahead = new Set([...ahead, ...more])
    } else return { solution, simulation }
  }
}

function placedGroups({ podGroups }: Solution): ReadonlySet<number> {
  return new Set([...podGroups].flatMap(([index, { kind }]) => (kind === 'placed' ? [index] : [])))
}

/** Those of the groups that are refused now, and why. */
function refusedOf(groups: ReadonlySet<number>, { podGroups }: Solution): Barred {
  return new Map(
    [...podGroups].flatMap(([index, outcome]) =>
      outcome.kind === 'refused' && groups.has(index) ? [[index, outcome.reason] as const] : [],
    ),
  )
}

/** Placed groups with a member whose claim turned out to be impossible: no member may run. */
function brokenGroups({ podGroups: groups, uids }: Problem, { podGroups, failures }: Solution): Barred {
  const broken = new Map<number, PodReason>()
  for (const [index, outcome] of podGroups) {
    const group = groups[index]
    if (outcome.kind !== 'placed' || group === undefined) continue
    const lost = outcome.held.filter((pod) => failures.has(pod))
    const [first = -1] = lost
    const because = failures.get(first)
    if (because === undefined) continue
    const { id, bound, minCount } = group
    const placed = outcome.held.length - lost.length
    const member = uids[first] ?? ''
    broken.set(index, { kind: 'podGroup', group: id, placed, bound, minCount, member, because })
  }
  return broken
}

function solved(compiled: CompiledProblem, rules: Rules): Decision {
  const { control } = rules
  const faults: Fault[] = []
  const firstFit = new Simulation(compiled, 'firstFit', rules)
  const validZones = attempted('zones', () => firstFit.validZones(), faults) ?? new Map()
  firstFit.run(control)
  const firstFitPricePerHour = firstFit.cost.pricePerHour
  const better = attempted(
    'improvement',
    () => withoutLaunches(firstFit, compiled, rules) ?? improved(firstFit, compiled, rules),
    faults,
  )
  const best = better ?? firstFit
  const outcome = best.outcome((error) => faults.push(faultOf('explanation', error)))
  const solution: Solution = {
    ...outcome,
    faults,
    poolsWithoutTypes: compiled.poolsWithoutTypes,
    malformed: compiled.malformed,
    validZones,
    pricePerHour: sumOfPrices(outcome.claims.map(({ pricePerHour }) => pricePerHour)).pricePerHour,
    firstFitPricePerHour,
  }
  return { solution, simulation: best }
}

/** What all simulations of one decision share. */
interface Rules {
  readonly control: SchedulingControl
  readonly barred: Barred
  /** Pods outside groups that are placed before the groups. */
  readonly ahead: ReadonlySet<number>
  readonly launches: readonly Launch[]
}

/**
 * A plan that ignores earlier plans and needs no new node: a pod whose planned room another pod took may fit once the
 * waiting pods give up theirs. Undefined when there is no such plan, or no need for one.
 */
function withoutLaunches(
  pinned: Simulation,
  compiled: CompiledProblem,
  { control, ...options }: Rules,
): Simulation | undefined {
  if (compiled.problem.planned.size === 0 || !pinned.isComplete || pinned.claims.length === 0)
    return undefined
  const free = Simulation.unplanned(compiled, options)
  free.run(control)
  return free.isComplete && free.claims.length === 0 && strandsNoMore(free, pinned) ? free : undefined
}

/**
 * Runs an optional part of the decision.
 * @returns undefined when it throws, which is reported as a fault.
 */
function attempted<T>(part: Fault['part'], run: () => T, faults: Fault[]): T | undefined {
  try {
    return run()
  } catch (error) {
    // When the time is over, the decision consists of the parts that are done.
    if (!(error instanceof Interrupted)) faults.push(faultOf(part, error))
    return undefined
  }
}

function faultOf(part: Fault['part'], error: unknown): Fault {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
  return { part, message, stack }
}

/**
 * The cheapest plan that the policy allows, or first fit if no other is cheaper. Of plans with equal cost, prefers one
 * in which pods need not wait for each other to be bound.
 */
function improved(
  firstFit: Simulation,
  compiled: CompiledProblem,
  { control, ...options }: Rules,
): Simulation {
  const { improvement } = compiled.problem.policy
  const isLate = () => control.shouldStop() || control.shouldImprove?.() === false
  const isNothingToImprove = !firstFit.isComplete || firstFit.claims.length === 0
  if (improvement === undefined || isNothingToImprove || isLate()) return firstFit
  firstFit.regroup(improvement, isLate)
  // Tighter packing only pays if kube-scheduler follows the plan.
  if (improvement === 'free') return firstFit
  const planned = (selection: Selection, avoidsCrowding: boolean): Simulation | undefined => {
    if (isLate()) return undefined
    const plan = new Simulation(compiled, selection, { ...options, avoidsCrowding })
    plan.run({ shouldStop: isLate })
    if (!plan.isComplete) return undefined
    plan.regroup(improvement, isLate)
    return plan
  }
  const tighter = firstFit.claims.length < 2 ? undefined : planned('cheapestFit', false)
  const cheapest = tighter !== undefined && isBetter(tighter, firstFit) ? tighter : firstFit
  if (!cheapest.isCrowded) return cheapest
  for (const selection of ['firstFit', 'cheapestFit'] as const) {
    const apart = planned(selection, true)
    if (apart !== undefined && isNoWorse(apart, cheapest)) return apart
  }
  return cheapest
}

/** Whether a plan has no more nodes, costs no more, and places all pods that the other places. */
function isNoWorse(plan: Simulation, than: Simulation): boolean {
  const { nodes, pricePerHour, unpriced } = plan.cost
  const other = than.cost
  const costsNoMore = unpriced <= other.unpriced && pricePerHour <= other.pricePerHour
  return nodes <= other.nodes && costsNoMore && strandsNoMore(plan, than)
}

function isBetter(plan: Simulation, than: Simulation): boolean {
  return isCheaper(plan.cost, than.cost) && strandsNoMore(plan, than)
}

function strandsNoMore(plan: Simulation, than: Simulation): boolean {
  const before = than.failed
  return [...plan.failed].every((pod) => before.has(pod))
}
