/** Places groups as units, beside the pods that are placed one by one (gangs.md 7.2). */
import { normalizedLabel } from '@tenon/api'
import type { GroupSource } from '../problem/problem.ts'
import type { PodReason } from '../../reasons/reasons.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { Template } from '../claims/pool-template.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import { groupsInOrder } from './group-order.ts'
import { type GroupDomain, type GroupOutcome, placeGroup, type Trial } from './group-placing.ts'
import type { TrialLog } from './trial-log.ts'
import type { SchedulingControl } from '../pace.ts'

/** What a simulation does with single pods. */
export interface PodPlacing {
  /** Whether the pod finds a place as one of this shape. */
  place(pod: number, shape: PodShape): boolean
  /** Whether it goes where it is planned to. */
  placeAsPlanned(pod: number, shape: PodShape): boolean
  /** Puts a pod on one certain claim, or on a new one of a template; undefined when it cannot be. */
  onOne(pod: number, on: OpenClaim | Template): OpenClaim | undefined
  /** @returns the pods that find no place. */
  placeAll(pods: readonly number[], control: SchedulingControl): readonly number[]
  /** @returns the pods that are left once those with a plan are where it says. */
  withoutPlanned(pods: readonly number[]): readonly number[]
  leaveUndecided(pods: readonly number[]): void
  /** Why a pod that was just tried finds no place as things are. */
  reasonNow(pod: number): PodReason
  isPlanned(pod: number): boolean
  /** Whether rules about other pods say nothing about where this one goes. */
  isIndifferent(pod: number): boolean
  /** Whether no pod was left undecided. */
  isComplete(): boolean
  /** How many pods have a place. */
  placed(): number
}

/** What this file works with. */
interface Dependencies {
  readonly compiled: CompiledProblem
  readonly log: TrialLog
  readonly pods: PodPlacing
  /** Why pods found no place. */
  readonly failures: Map<number, PodReason | PodShape>
  /** Groups, by index, that find no place whatever there is, and why. */
  readonly barred: ReadonlyMap<number, PodReason>
  /** Pods of no group that are placed before groups. */
  readonly ahead: ReadonlySet<number>
}

export class GroupUnits {
  readonly #deps: Dependencies
  readonly #outcomes = new Map<number, GroupOutcome>()
  /** Shapes of members in the domain of their group. */
  readonly #shapes = new Map<number, PodShape>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** By index of the group; groups that were not decided are not here. */
  get outcomes(): ReadonlyMap<number, GroupOutcome> {
    return this.#outcomes
  }

  /** Of groups, by index, that have a place: the members without which no other runs. */
  get held(): readonly { readonly group: number; readonly pods: readonly number[] }[] {
    return [...this.#outcomes].flatMap(([group, outcome]) =>
      outcome.kind === 'placed' ? [{ group, pods: outcome.held }] : [],
    )
  }

  /** The shape of a pod, in the domain of its group if it has one. */
  shapeOf(pod: number): PodShape {
    return this.#shapes.get(pod) ?? this.#deps.compiled.shapeOf(pod)
  }

  /** Places groups and the other pods; a group that finds no place is tried again once others have theirs. */
  place(groups: readonly GroupSource[], all: readonly number[], control: SchedulingControl): void {
    const { ahead, compiled, pods } = this.#deps
    const inScope = new Set(all)
    const grouped = new Set(groups.flatMap(({ members }) => members))
    const ordinary = pods.withoutPlanned(all.filter((pod) => !grouped.has(pod)))
    const first = ordinary.filter((pod) => ahead.has(pod))
    const left = first.length === 0 ? [] : pods.placeAll(first, control)
    let rest = [...left, ...ordinary.filter((pod) => !ahead.has(pod))]
    if (!pods.isComplete()) {
      pods.leaveUndecided([...rest, ...all.filter((pod) => grouped.has(pod))])
      return
    }
    let waiting = groupsInOrder(
      groups,
      (pod) => pods.isPlanned(pod),
      (pod) => compiled.cpuOf(pod),
    )
    const placeOf = new Map(all.map((pod, place) => [pod, place]))
    const byPlace = (a: number, b: number) => (placeOf.get(a) as number) - (placeOf.get(b) as number)
    for (;;) {
      const before = pods.placed()
      const refused: GroupSource[] = []
      for (const [done, group] of waiting.entries()) {
        const members = group.members.filter((pod) => inScope.has(pod))
        if (control.shouldStop()) {
          pods.leaveUndecided([...rest, ...waiting.slice(done).flatMap((each) => each.members)])
          return
        }
        const others = this.#placeMembers(group, members)
        if (others !== undefined) rest.push(...others)
        else if (members.some((pod) => !pods.isIndifferent(pod))) refused.push(group)
      }
      rest = [...pods.placeAll(rest.toSorted(byPlace), control)]
      if (!pods.isComplete() || refused.length === 0 || before === pods.placed()) return
      waiting = refused
    }
  }

  /** @returns members that are left to be placed like other pods; undefined when the group finds no place. */
  #placeMembers(group: GroupSource, members: readonly number[]): readonly number[] | undefined {
    const { barred, compiled, failures, log, pods } = this.#deps
    const because = barred.get(group.index)
    const planned = members.filter((pod) => pods.isPlanned(pod))
    const others = members.filter((pod) => !pods.isPlanned(pod))
    const { outcome, others: left } =
      because === undefined
        ? placeGroup(group, [...planned, ...others], this.#trial())
        : { outcome: { kind: 'refused', reason: because } as const, others: [] }
    log.keep()
    this.#outcomes.set(group.index, outcome)
    if (outcome.kind === 'refused') {
      for (const pod of members) failures.set(pod, outcome.reason)
      return undefined
    }
    for (const pod of outcome.held) failures.delete(pod)
    const { topology } = group
    if (topology !== undefined && outcome.domain !== undefined)
      for (const pod of left)
        this.#shapes.set(pod, compiled.shapeOf(pod).within(normalizedLabel(topology.key), outcome.domain))
    return left
  }

  #trial(): Trial {
    const { compiled, failures, log, pods } = this.#deps
    let claim: OpenClaim | undefined
    return {
      templates: compiled.templates.length,
      domainsOf: (key) => compiled.domainsOf(key),
      begin: () => {
        log.begin()
        claim = undefined
      },
      keep: () => {
        log.keep()
      },
      undo: () => {
        log.undo()
      },
      place: (pod, domain) => {
        if (domain.kind !== 'newNode') return this.#placeMember(pod, domain)
        const on = claim ?? compiled.templates[domain.template]
        const taker = on && pods.onOne(pod, on)
        claim ??= taker
        if (taker === undefined) failures.set(pod, compiled.shapeOf(pod))
        return taker !== undefined
      },
      rise: () => log.rise(),
      reasonOf: (pod) => pods.reasonNow(pod),
      uidOf: (pod) => compiled.problem.uids[pod] ?? '',
    }
  }

  #placeMember(pod: number, domain: GroupDomain): boolean {
    const { compiled, pods } = this.#deps
    const own = compiled.shapeOf(pod)
    const shape = domain.kind === 'value' ? own.within(domain.key, domain.value) : own
    return (pods.isPlanned(pod) && pods.placeAsPlanned(pod, shape)) || pods.place(pod, shape)
  }
}
