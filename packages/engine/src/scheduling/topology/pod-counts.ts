/** Counts pods in the domains of topology groups: bound pods, and those that a simulation places (scheduling.md 9). */
import { labels, ownValue } from '@tenon/api'
import { oneOf } from '../../requirements/requirement.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import type { BoundCount, Problem, SelectablePod } from '../problem/problem.ts'
import type { TopologyGroup } from './group.ts'
import { type KnownValues, PodIndex } from './group-index.ts'
import type { NodeDomains, NodeView } from './node-domains.ts'

/** A point that {@link PodCounts.rollback} returns to. */
export interface TopologyMark {
  readonly changes: number
  readonly placed: number
}

type Change =
  | {
      readonly kind: 'counted'
      readonly group: TopologyGroup
      readonly id: number
      readonly pods: number
      readonly wasKnown: boolean
    }
  | {
      readonly kind: 'unlocated'
      readonly group: TopologyGroup
      readonly host: number
      readonly pods: number
    }
  | { readonly kind: 'other'; readonly undo: () => void }

export class PodCounts {
  readonly #problem: Problem
  readonly #states: RequirementStates
  readonly #nodes: NodeDomains
  readonly #boundIndex: PodIndex
  readonly #boundByShape: readonly (readonly BoundCount[])[]
  readonly #placed: { readonly shape: PodShape; readonly node: NodeView }[] = []
  readonly #admitted = new Map<TopologyGroup, Map<StateId, boolean>>()
  /** Changes since the first mark. */
  #log: Change[] | undefined

  constructor(problem: Problem, states: RequirementStates, nodes: NodeDomains, known: KnownValues) {
    this.#problem = problem
    this.#states = states
    this.#nodes = nodes
    this.#boundIndex = new PodIndex(problem.boundShapes, known)
    const counts: BoundCount[][] = problem.boundShapes.map(() => [])
    for (const count of problem.boundCounts) counts[count.shape]?.push(count)
    this.#boundByShape = counts
  }

  /** Shapes of the pods that were placed. */
  get placedShapes(): ReadonlySet<PodShape> {
    return new Set(this.#placed.map(({ shape }) => shape))
  }

  /** Remembers a placed pod for groups that are added later. */
  place(shape: PodShape, node: NodeView): void {
    this.#placed.push({ shape, node })
  }

  /** Counts in a new group all pods that are bound or placed. */
  fill(group: TopologyGroup): void {
    for (const index of this.#boundIndex.candidates(group)) {
      const shape = this.#problem.boundShapes[index]
      // Terminating pods still attract and repel others, but no longer count for spread constraints.
      if (shape !== undefined && group.selects(shape))
        this.#countBound(index, group, group.rule.kind === 'spread' ? 'counted' : 'present')
    }
    for (const { shape, node } of this.#placed)
      if (group.selects(shape.selectable)) this.count(group, node, 1)
  }

  /** Whether a pod of this shape is bound to a node that topology rules know. */
  isBoundToNode(shape: number): boolean {
    return (this.#boundByShape[shape] ?? []).some(({ node }) => this.#problem.topologyNodes.has(node))
  }

  /** Counts the bound pods of this shape in a group of their own anti-affinity, terminating ones too. */
  countRepellingBound(shape: number, group: TopologyGroup): void {
    this.#countBound(shape, group, 'present')
  }

  #countBound(shape: number, group: TopologyGroup, which: 'counted' | 'present'): void {
    for (const count of this.#boundByShape[shape] ?? []) {
      const node = this.#problem.topologyNodes.get(count.node)
      if (node === undefined) continue
      const domain = group.isHost ? node.hostname : ownValue(node.labels, group.rule.key)
      if (domain === undefined || !this.#nodes.isCounted(group, node)) continue
      group.record(group.domains.idOf(domain), count[which])
    }
  }

  /** Counts a pod on a node: for anti-affinity in every domain that the node may be in, else only in a certain one. */
  count(group: TopologyGroup, node: NodeView, pods: 1 | -1): void {
    if (group.rule.kind === 'spread' && !this.#admits(group, node)) return
    if (group.rule.kind === 'antiAffinity') {
      this.countRepelling(group, node, pods)
      return
    }
    const ids = this.#possible(group, node)
    if (ids.length === 1) this.#record(group, ids[0] as number, pods)
  }

  /** Counts a pod that repels others in every domain that its node may be in. */
  countRepelling(group: TopologyGroup, node: NodeView, pods: 1 | -1): void {
    const ids = this.#possible(group, node)
    for (const id of ids) this.#record(group, id, pods)
    if (ids.length > 0 || node.isNode) return
    this.#log?.push({ kind: 'unlocated', group, host: node.host, pods })
    group.recordUnlocated(node.host, pods)
  }

  /** Starts to note changes, unless they are noted already. @returns the point that a rollback can return to. */
  mark(): TopologyMark {
    this.#log ??= []
    return { changes: this.#log.length, placed: this.#placed.length }
  }

  /** Notes a change elsewhere that a rollback has to undo. */
  note(undo: () => void): void {
    this.#log?.push({ kind: 'other', undo })
  }

  /** Undoes everything since the mark. */
  rollback({ changes, placed }: TopologyMark): void {
    const log = this.#log ?? []
    while (log.length > changes) revert(log.pop() as Change)
    this.#placed.length = placed
  }

  #record(group: TopologyGroup, id: number, pods: number): void {
    this.#log?.push({ kind: 'counted', group, id, pods, wasKnown: group.knows(id) })
    group.record(id, pods)
  }

  #possible(group: TopologyGroup, { host, state }: NodeView): readonly number[] {
    if (group.isHost) return [host]
    const set = this.#states.get(state).get(group.rule.key)
    return set === undefined || set.complement
      ? []
      : [...set.values].map((value) => group.domains.idOf(value))
  }

  #admits(group: TopologyGroup, { host, state, taints }: NodeView): boolean {
    const { filter } = group.rule
    if (filter.alternatives.length === 0 && filter.tolerations === undefined) return true
    if (group.filtersHosts) {
      const name = oneOf(labels.hostname, this.#nodes.namesOf(labels.hostname).name(host))
      return group.admits(new Map([...this.#states.get(state), [labels.hostname, name]]), taints)
    }
    if (filter.tolerations !== undefined && taints.length > 0)
      return group.admits(this.#states.get(state), taints)
    let known = this.#admitted.get(group)
    if (known === undefined) {
      known = new Map()
      this.#admitted.set(group, known)
    }
    let verdict = known.get(state)
    if (verdict === undefined) {
      verdict = group.admits(this.#states.get(state), [])
      known.set(state, verdict)
    }
    return verdict
  }
}

function revert(change: Change): void {
  switch (change.kind) {
    case 'unlocated':
      change.group.recordUnlocated(change.host, -change.pods)
      return
    case 'counted':
      change.group.record(change.id, -change.pods)
      if (!change.wasKnown) change.group.forgetDomain(change.id)
      return
    case 'other':
      change.undo()
  }
}

/** DaemonSets by their indexes. */
export interface TemplateDaemons {
  /** DaemonSets that run on every instance type of the template. */
  readonly always: readonly number[]
  /** DaemonSets that run on some instance type of the template. */
  readonly ever: readonly number[]
}

const nobody: TemplateDaemons = { always: [], ever: [] }

/** Affinity may be met, and anti-affinity broken, by daemon pods that a new node will run (reports.md 2). */
export class ExpectedPods {
  readonly #daemons: readonly SelectablePod[]
  readonly #templates: readonly TemplateDaemons[]
  readonly #onHost = new Map<number, TemplateDaemons>()
  /** The DaemonSets that a group selects; groups that select none are absent. */
  readonly #selected = new Map<TopologyGroup, ReadonlySet<number>>()

  /**
   * @param daemons the pod of each DaemonSet as selectors see it.
   * @param templates the DaemonSets of each template.
   */
  constructor(daemons: readonly SelectablePod[], templates: readonly TemplateDaemons[]) {
    this.#daemons = daemons
    this.#templates = templates
  }

  /** Finds the DaemonSets that the group selects; spread constraints do not expect pods. */
  follow(group: TopologyGroup): void {
    if (group.rule.kind === 'spread') return
    const selected = this.#daemons.flatMap((daemon, index) => (group.selects(daemon) ? [index] : []))
    if (selected.length > 0) this.#selected.set(group, new Set(selected))
  }

  onClaim(host: number, template: number): void {
    if (this.#selected.size > 0) this.#onHost.set(host, this.#templates[template] ?? nobody)
  }

  onNode(host: number, daemons: readonly number[]): void {
    if (daemons.length > 0) this.#onHost.set(host, { always: daemons, ever: daemons })
  }

  /** Whether the group selects some DaemonSet, so that any new host may meet an affinity. */
  mayMeet(group: TopologyGroup): boolean {
    return this.#selected.has(group)
  }

  /** Whether the host will run a daemon pod that the group selects. */
  on(host: number, group: TopologyGroup): boolean {
    const selected = this.#selected.get(group)
    return selected !== undefined && isAmong(this.#onHost.get(host) ?? nobody, group, selected)
  }

  /** Whether nodes of a template will run a daemon pod that the group selects. */
  ofTemplate(template: number, group: TopologyGroup): boolean {
    const selected = this.#selected.get(group)
    return selected !== undefined && isAmong(this.#templates[template] ?? nobody, group, selected)
  }
}

/** Affinity needs a pod that certainly runs; anti-affinity avoids nodes where one may run. */
function isAmong(
  { always, ever }: TemplateDaemons,
  { rule }: TopologyGroup,
  selected: ReadonlySet<number>,
): boolean {
  return (rule.kind === 'affinity' ? always : ever).some((daemon) => selected.has(daemon))
}
