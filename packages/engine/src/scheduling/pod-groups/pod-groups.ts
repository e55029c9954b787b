/** Schedules pod groups, all members or none, beside the pods that are placed one by one (gangs.md 7.2). */
import { normalizedLabel, type PriceSum } from '@tenon/api'
import type { GroupSource } from '../problem/problem.ts'
import type { PodReason } from '../../reasons/reasons.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import { leastDemanding, reasonOf } from '../outcome.ts'
import type { SchedulingControl } from '../pace.ts'
import type { PodPlacing } from '../pod-placing.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import { addTo, amountsFit } from '../pods/resource-space.ts'
import { memoized } from '../memoized.ts'
import type { SchedulerState } from '../scheduler-state.ts'
import { type GroupDomain, type GroupOutcome, placeGroup, type Trial } from './group-placing.ts'
import type { PlacedGroup } from './sure-claims.ts'
import { compareText } from '../../input/compare-text.ts'

export interface GroupRules {
  /** Groups, by index, that are not tried, and why they cannot be scheduled. */
  readonly barred: ReadonlyMap<number, PodReason>
  /** Pods outside groups that are placed before the groups. */
  readonly ahead: ReadonlySet<number>
}

export class PodGroups {
  /** Errors of explanations. */
  readonly faults: unknown[] = []
  readonly #compiled: CompiledProblem
  readonly #state: SchedulerState
  readonly #placing: PodPlacing
  readonly #rules: GroupRules
  readonly #outcomes = new Map<number, GroupOutcome>()

  constructor(state: SchedulerState, placing: PodPlacing, rules: GroupRules) {
    this.#compiled = state.compiled
    this.#state = state
    this.#placing = placing
    this.#rules = rules
  }

  /** By index of the group; without groups that were not decided. */
  get outcomes(): ReadonlyMap<number, GroupOutcome> {
    return this.#outcomes
  }

  /** Places these pods: planned pods, the pods ahead of groups, the groups, and then all other pods. */
  place(all: readonly number[], control: SchedulingControl): void {
    const placing = this.#placing
    const inScope = new Set(all)
    const groups = this.#compiled.problem.podGroups.filter(({ members }) =>
      members.some((pod) => inScope.has(pod)),
    )
    if (groups.length === 0) {
      placing.placeAll(all, control)
      return
    }
    this.#state.observeRelaxations()
    const { ahead } = this.#rules
    const grouped = new Set(groups.flatMap(({ members }) => members))
    const ordinary = placing.placePlanned(all.filter((pod) => !grouped.has(pod)))
    const first = ordinary.filter((pod) => ahead.has(pod))
    const left = first.length === 0 ? [] : placing.placeAll(first, control)
    let rest = [...left, ...ordinary.filter((pod) => !ahead.has(pod))]
    if (!placing.isComplete) {
      placing.leaveUndecided([...rest, ...all.filter((pod) => grouped.has(pod))])
      return
    }
    const rank = new Map(all.map((pod, index) => [pod, index]))
    const byRank = (a: number, b: number) => (rank.get(a) as number) - (rank.get(b) as number)
    let waiting = groupsInOrder(groups, placing, this.#compiled)
    for (;;) {
      const before = placing.placed
      const refused: GroupSource[] = []
      for (const [done, group] of waiting.entries()) {
        const members = group.members.filter((pod) => inScope.has(pod))
        if (control.shouldStop()) {
          placing.leaveUndecided([...rest, ...waiting.slice(done).flatMap((each) => each.members)])
          return
        }
        const others = this.#placeMembers(group, members)
        if (others !== undefined) rest.push(...others)
        else if (members.some((pod) => !this.#isIndifferent(pod))) refused.push(group)
      }
      rest = [...placing.placeAll(rest.toSorted(byRank), control)]
      // A group whose members follow rules about other pods may fit once others are placed.
      if (!placing.isComplete || refused.length === 0 || before === placing.placed) return
      waiting = refused
    }
  }

  /**
   * Pods outside groups that are not placed, but would fit on a new node of a group of the same or lower priority:
   * the scheduler tries them before the group, which then no longer fits (gangs.md 5.4, 7.4). A more important group
   * preempts them.
   */
  podsOutsideGroups(): readonly number[] {
    const { podGroups } = this.#compiled.problem
    const { failures, claims } = this.#placing
    const priorities = new Map(
      this.#held().flatMap(({ group, pods }) =>
        pods.map((pod) => [pod, podGroups[group]?.priority ?? 0] as const),
      ),
    )
    if (priorities.size === 0 || failures.size === 0) return []
    const grouped = new Set(podGroups.flatMap(({ members }) => members))
    const hosts = claims.all.flatMap((claim) => {
      const held = claim.pods.flatMap((pod) => priorities.get(pod) ?? [])
      return held.length === 0 ? [] : [{ claim, priority: Math.max(...held) }]
    })
    const couldGo = memoized((shape: PodShape) =>
      hosts.some(
        ({ claim, priority }) => (shape.spec.priority ?? 0) >= priority && this.#fitsAlone(claim, shape),
      ),
    )
    return [...failures.keys()].filter((pod) => {
      const shape = this.#compiled.shapeOf(pod)
      return shape.origin === 'pending' && !grouped.has(pod) && couldGo(shape)
    })
  }

  /** Placed groups with members of different shapes. */
  unlike(): readonly PlacedGroup[] {
    const { podGroups } = this.#compiled.problem
    if (podGroups.length === 0) return []
    const { claims, nodeOf } = this.#placing
    const shapeOf = (pod: number) => this.#compiled.shapeOf(pod)
    const onClaims = new Set(claims.all.flatMap(({ pods }) => pods))
    return this.#held().flatMap(({ group }) => {
      const members = podGroups[group]?.members ?? []
      const pods = new Set(members.filter((pod) => onClaims.has(pod)))
      if (pods.size === 0 || new Set(members.map(shapeOf)).size < 2) return []
      const byNode = Map.groupBy(
        members.filter((pod) => nodeOf.has(pod)),
        (pod) => nodeOf.get(pod) as number,
      )
      const nodes = [...byNode].map(([node, there]) => {
        const room = this.#state.nodeAt(node).remaining.slice()
        for (const pod of there) addTo(room, shapeOf(pod).amounts)
        return { room, pods: there }
      })
      return [{ pods, nodes }]
    })
  }

  /** Placed groups, by index, with the members that only run together. */
  #held(): readonly { readonly group: number; readonly pods: readonly number[] }[] {
    return [...this.#outcomes].flatMap(([group, outcome]) =>
      outcome.kind === 'placed' ? [{ group, pods: outcome.held }] : [],
    )
  }

  /** Whether the node of a claim could take a pod of this shape if nothing else ran there. */
  #fitsAlone(claim: OpenClaim, shape: PodShape): boolean {
    const room = this.#compiled.finisher.cheapestRoom(claim)
    if (room === undefined || !amountsFit(shape.amounts, room)) return false
    return this.#placing.claims.admission.targets(leastDemanding(shape), claim.class).length > 0
  }

  #isIndifferent(pod: number): boolean {
    return this.#state.topology.isIndifferent(this.#compiled.shapeOf(pod))
  }

  /** @returns members beyond the minimum, which are placed like other pods; undefined when the group does not fit. */
  #placeMembers(group: GroupSource, members: readonly number[]): readonly number[] | undefined {
    const { failures, log } = this.#placing
    const because = this.#rules.barred.get(group.index)
    const planned = members.filter((pod) => this.#placing.isPlanned(pod))
    const others = members.filter((pod) => !this.#placing.isPlanned(pod))
    const trial = new GroupTrial(this.#state, this.#placing, this.faults)
    const { outcome, others: left } =
      because === undefined
        ? placeGroup(group, [...planned, ...others], trial)
        : { outcome: { kind: 'refused', reason: because } as const, others: [] }
    log.keep()
    this.#outcomes.set(group.index, outcome)
    if (outcome.kind === 'refused') {
      for (const pod of members) failures.set(pod, outcome.reason)
      return undefined
    }
    for (const pod of outcome.held) failures.delete(pod)
    const { topology } = group
    if (topology !== undefined && outcome.domain !== undefined) {
      const key = normalizedLabel(topology.key)
      for (const pod of left) this.#placing.confine(pod, key, outcome.domain)
    }
    return left
  }
}

/** Tries the members of one group. */
class GroupTrial implements Trial {
  readonly #compiled: CompiledProblem
  readonly #state: SchedulerState
  readonly #placing: PodPlacing
  readonly #faults: unknown[]
  /** The new claim of the domain `newNode`, once a member has opened it. */
  #claim: OpenClaim | undefined

  constructor(state: SchedulerState, placing: PodPlacing, faults: unknown[]) {
    this.#compiled = state.compiled
    this.#state = state
    this.#placing = placing
    this.#faults = faults
  }

  get templates(): number {
    return this.#compiled.templates.length
  }

  domainsOf(key: string): readonly string[] {
    return this.#compiled.domainsOf(key)
  }

  uidOf(pod: number): string {
    return this.#compiled.problem.uids[pod] ?? ''
  }

  begin(): void {
    this.#placing.beginTrial()
    this.#claim = undefined
  }

  keep(): void {
    this.#placing.log.keep()
  }

  undo(): void {
    this.#placing.log.undo()
  }

  rise(): PriceSum {
    return this.#placing.log.rise()
  }

  place(pod: number, domain: GroupDomain): boolean {
    const own = this.#compiled.shapeOf(pod)
    if (domain.kind === 'newNode') {
      const on = this.#claim ?? this.#compiled.templates[domain.template]
      const consumer = on && this.#placing.placeOn(pod, on)
      this.#claim ??= consumer
      if (consumer === undefined) this.#placing.failures.set(pod, own)
      return consumer !== undefined
    }
    const shape = domain.kind === 'value' ? own.within(domain.key, domain.value) : own
    const isAsPlanned = this.#placing.isPlanned(pod) && this.#placing.placeAsPlanned(pod, shape)
    return isAsPlanned || this.#placing.place(pod, shape)
  }

  reasonOf(pod: number): PodReason {
    const failure = this.#placing.failures.get(pod)
    if (failure === undefined) return { kind: 'unexplained' }
    if ('kind' in failure) return failure
    return reasonOf(failure, this.#placing, this.#state, (error) => this.#faults.push(error))
  }
}

/**
 * Groups with planned members come first: if another group took their nodes, they would be launched twice. Then by
 * priority, by the CPU that all members request, and the oldest.
 */
function groupsInOrder(
  groups: readonly GroupSource[],
  placing: Pick<PodPlacing, 'isPlanned'>,
  compiled: Pick<CompiledProblem, 'cpuOf'>,
): readonly GroupSource[] {
  const ranks = new Map(
    groups.map((group) => [
      group,
      {
        planned: group.members.some((pod) => placing.isPlanned(pod)) ? 0 : 1,
        cpu: group.members.reduce((sum, pod) => sum + compiled.cpuOf(pod), 0),
      },
    ]),
  )
  const rankOf = (group: GroupSource) => ranks.get(group) ?? { planned: 1, cpu: 0 }
  return groups.toSorted(
    (a, b) =>
      rankOf(a).planned - rankOf(b).planned ||
      b.priority - a.priority ||
      rankOf(b).cpu - rankOf(a).cpu ||
      compareText(a.createdAt, b.createdAt) ||
      compareText(a.id, b.id),
  )
}
