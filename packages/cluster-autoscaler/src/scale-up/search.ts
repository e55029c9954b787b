/** Which groups could help which pods, and with how many nodes (cluster-autoscaler.md 4.3, 4.4). */
import type { NodeGroup } from '@tenon/provider'
import type { Pod } from '@tenon/api'
import type { PodReader, Snapshot } from '@tenon/filters'
import type { LoopView, NodeTemplate } from '../model.ts'
import type { ScaleUpOptions } from '../options/options.ts'
import { type PodGroup, podGroups } from '../pods/equivalence.ts'
import { nodeLike } from '../templates/node-templates.ts'
import { estimate } from './estimate.ts'
import type { ExpansionOption } from './option.ts'
import type { QuotaTracker } from './quotas.ts'
import type { SkipReason } from './reasons.ts'
import { areSimilar } from './similarity.ts'

/** Whether the registry allows a group to grow now. */
export type GroupSafety = 'safe' | 'unhealthy' | 'backoff'

export interface SearchQuestion {
  readonly view: LoopView
  readonly pods: readonly Pod[]
  readonly options: ScaleUpOptions
  readonly safetyOf: (groupId: string) => GroupSafety
  readonly quotas: QuotaTracker
  readonly reader: PodReader
  /** Milliseconds of a monotonic clock, to limit the search. */
  readonly monotonic: () => number
}

/** A group that may grow by at least one node. */
export interface ValidGroup {
  readonly group: NodeGroup
  readonly template: NodeTemplate
  /** Pod groups that fit on a new node of it. */
  readonly takes: ReadonlySet<PodGroup>
}

export interface Search {
  readonly groups: readonly PodGroup[]
  readonly valid: ReadonlyMap<string, ValidGroup>
  readonly options: readonly ExpansionOption[]
  /** For each pod group, why each node group does not help. */
  readonly refusals: ReadonlyMap<PodGroup, ReadonlyMap<string, SkipReason>>
  /** Groups that were skipped before any pod was checked. */
  readonly skipped: ReadonlyMap<string, SkipReason>
  readonly overflowing: number
  /** How long it took to group the pods. */
  readonly groupingMs: number
}

export function* searchOptions(question: SearchQuestion): Generator<void, Search> {
  const { view, pods, options, monotonic } = question
  const groupingStart = monotonic()
  const { groups, overflowing } = podGroups(pods)
  const groupingMs = monotonic() - groupingStart
  const refusals = new Map(groups.map((group) => [group, new Map<string, SkipReason>()]))
  const skipped = new Map<string, SkipReason>()
  const valid = new Map<string, ValidGroup>()
  for (const group of view.index.groups.values()) {
    const reason = skipReasonOf(group, question)
    if (reason !== undefined) skipped.set(group.id, reason)
    const template = view.templates.get(group.id)
    if (template === undefined || (reason !== undefined && !options.explainSkippedNodeGroups)) {
      for (const reasons of refusals.values()) reasons.set(group.id, reason ?? { kind: 'notReady' })
      continue
    }
    const takes = yield* takenBy(template, group.id, groups, view.snapshot, refusals)
    if (reason === undefined) valid.set(group.id, { group, template, takes })
    else for (const taken of takes) refusals.get(taken)?.set(group.id, reason)
  }
  const found: ExpansionOption[] = []
  const start = monotonic()
  for (const each of valid.values()) {
    if (monotonic() - start > options.maxBinpackingMs) break
    const option = yield* optionOf(each, valid, question)
    if (option.nodeCount > 0) found.push(option)
    const placed = new Set(option.pods)
    for (const taken of each.takes)
      if (taken.pods.every((pod) => !placed.has(pod)))
        refusals.get(taken)?.set(each.group.id, { kind: 'noRoom' })
  }
  return { groups, valid, options: found, refusals, skipped, overflowing, groupingMs }
}

/** Other valid groups with nodes similar to those of `of`. */
export function similarGroups(
  of: ValidGroup,
  valid: ReadonlyMap<string, ValidGroup>,
  { options, reader }: Pick<SearchQuestion, 'options' | 'reader'>,
): readonly ValidGroup[] {
  if (!options.balanceSimilarNodeGroups) return []
  return [...valid.values()].filter(
    (other) =>
      other.group.id !== of.group.id &&
      [...of.takes].every((group) => other.takes.has(group)) &&
      areSimilar(of.template, other.template, options, reader),
  )
}

function skipReasonOf(group: NodeGroup, question: SearchQuestion): SkipReason | undefined {
  const { view, safetyOf, quotas } = question
  const fault = view.index.faults.get(group.id)
  if (fault !== undefined) return { kind: 'fault', reason: fault }
  const hold = view.index.holds.get(group.id)
  if (hold?.forbids === 'all') return { kind: 'fault', reason: hold.reason }
  const safety = safetyOf(group.id)
  if (safety === 'unhealthy') return { kind: 'notReady' }
  if (safety === 'backoff') return { kind: 'backoff' }
  const template = view.templates.get(group.id)
  if (template === undefined) return { kind: 'notReady' }
  if (group.targetSize >= group.maxSize) return { kind: 'maxSize' }
  if (quotas.instancesLeft === 0) return { kind: 'instanceQuota' }
  const exceeded = quotas.exceededBy(template, 1)
  return exceeded.length > 0 ? { kind: 'quota', exceeded } : undefined
}

/** Places one pod of each group on an empty new node. */
function* takenBy(
  template: NodeTemplate,
  groupId: string,
  groups: readonly PodGroup[],
  snapshot: Snapshot,
  refusals: ReadonlyMap<PodGroup, Map<string, SkipReason>>,
): Generator<void, Set<PodGroup>> {
  const mark = snapshot.mark()
  const { node, pods, ...parts } = nodeLike(template, `trial-node-of-${groupId}`, false)
  const entry = snapshot.setNode(node, parts)
  for (const pod of pods) snapshot.assign(pod, entry.name)
  const takes = new Set<PodGroup>()
  try {
    for (const group of groups) {
      yield
      const rejection = snapshot.check(group.exemplar, entry)
      if (rejection === undefined) takes.add(group)
      else refusals.get(group)?.set(groupId, { kind: 'filter', reasons: rejection.reasons })
    }
  } finally {
    snapshot.revert(mark)
  }
  return takes
}

function* optionOf(
  valid: ValidGroup,
  all: ReadonlyMap<string, ValidGroup>,
  question: SearchQuestion,
): Generator<void, ExpansionOption> {
  const { view, options, monotonic } = question
  const { group, template, takes } = valid
  const start = monotonic()
  const { nodeCount, pods, podsByNode } = yield* estimate({
    groupId: group.id,
    template,
    groups: [...takes],
    permits: permitsOf(valid, all, question),
    snapshot: view.snapshot,
    isOver: () => monotonic() - start > options.maxNodeGroupBinpackingMs,
    extrapolates: options.fastpathBinpacking,
  })
  return { groupId: group.id, nodeCount, pods, podsByNode, template }
}

/** Maximum nodes of one option. */
function permitsOf(
  valid: ValidGroup,
  all: ReadonlyMap<string, ValidGroup>,
  question: SearchQuestion,
): number {
  const { view, options, quotas } = question
  const roomOf = ({ group }: ValidGroup) => Math.max(0, group.maxSize - group.targetSize)
  const room = [valid, ...similarGroups(valid, all, question)].reduce((sum, each) => sum + roomOf(each), 0)
  const perScaleUp = options.maxNodesPerScaleUp > 0 ? options.maxNodesPerScaleUp : room
  const inTotal = options.maxNodesTotal > 0 ? options.maxNodesTotal - view.snapshot.nodes.length : room
  return Math.max(0, Math.min(room, perScaleUp, inTotal, quotas.instancesLeft ?? room))
}
