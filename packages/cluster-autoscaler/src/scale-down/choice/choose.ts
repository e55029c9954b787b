/** Which unneeded nodes are removed now (cluster-autoscaler.md 6.5). */
import type { Node } from '@tenon/api'
import type { NodeGroup } from '@tenon/provider'
import type { NodeGroupIndex } from '../../model.ts'
import { type ScaleDownOptions, scaleDownOptionsOf } from '../../options/options.ts'
import { isScaleDownDisabled } from '../planning/eligibility.ts'
import type { UnneededNode } from '../planning/planner.ts'
import type { UnremovableNode, UnremovableReason } from '../reasons.ts'
import { ResourceFloor } from './resource-floor.ts'

export interface ChoiceInput {
  readonly nowMs: number
  readonly unneeded: readonly UnneededNode[]
  /** All registered nodes. */
  readonly nodes: readonly Node[]
  readonly groups: ReadonlyMap<string, NodeGroup>
  /** By group id: options that replace `options`. */
  readonly groupOptions: NodeGroupIndex['options']
  /** Label of nodes with a GPU; undefined if types of GPUs are not told apart. */
  readonly gpuLabel: string | undefined
  /** Deletions in progress by group id. */
  readonly inProgress: ReadonlyMap<string, number>
  /** Nodes that are being drained. */
  readonly draining: number
  readonly options: ScaleDownOptions
}

export interface Choice {
  readonly empty: readonly UnneededNode[]
  readonly drain: readonly UnneededNode[]
  /** Nodes that are not removed now; without those that only exceed the parallelism. */
  readonly refused: readonly UnremovableNode[]
}

/** The nodes to remove now. Those that have been unneeded longest come first. */
export function chooseNodes(input: ChoiceInput): Choice {
  const floor = new ResourceFloor(input.nodes, input.options, input.gpuLabel)
  const removable = new Map([...input.groups.values()].map((group) => [group.id, roomOf(group, input)]))
  const accepted: UnneededNode[] = []
  const refused: UnremovableNode[] = []
  for (const unneeded of input.unneeded.toSorted(byRank)) {
    const reason = timeReason(unneeded, input) ?? limitReason(unneeded, { input, removable, floor })
    if (reason === undefined) accepted.push(unneeded)
    else refused.push({ nodeName: unneeded.node.metadata.name, reason })
  }
  const { maxParallelism, maxDrainParallelism } = input.options
  const cropped = crop({
    empty: accepted.filter(isEmpty),
    drain: accepted.filter((each) => !isEmpty(each)),
    inProgress: [...input.inProgress.values()].reduce((sum, count) => sum + count, 0),
    draining: input.draining,
    maxParallelism,
    maxDrainParallelism,
  })
  return { ...cropped, refused }
}

/** How long a node must have been unneeded. */
export function neededMs(
  { isReady, groupId }: Pick<UnneededNode, 'isReady' | 'groupId'>,
  all: ScaleDownOptions,
  ofGroups: NodeGroupIndex['options'],
): number {
  const options = scaleDownOptionsOf(all, ofGroups.get(groupId))
  return isReady ? options.unneededTimeMs : options.unreadyTimeMs
}

function roomOf(group: NodeGroup, { inProgress }: ChoiceInput): number {
  return group.targetSize - (inProgress.get(group.id) ?? 0) - group.minSize
}

function isEmpty({ drain }: UnneededNode): boolean {
  return drain.toMove.length === 0
}

function rankOf(node: UnneededNode): number {
  if (isEmpty(node)) return 0
  return node.isRisky ? 2 : 1
}

function byRank(a: UnneededNode, b: UnneededNode): number {
  const byTime = rankOf(a) - rankOf(b) || a.sinceMs - b.sinceMs
  return byTime || (a.node.metadata.name < b.node.metadata.name ? -1 : 1)
}

function timeReason(
  unneeded: UnneededNode,
  { nowMs, options, groupOptions }: ChoiceInput,
): UnremovableReason | undefined {
  if (isScaleDownDisabled(unneeded.node)) return { kind: 'ScaleDownDisabledAnnotation' }
  const needed = neededMs(unneeded, options, groupOptions)
  const forMs = nowMs - unneeded.sinceMs
  if (needed > 0 && forMs <= needed) {
    const kind = unneeded.isReady ? 'NotUnneededLongEnough' : 'NotUnreadyLongEnough'
    return { kind, forMs, neededMs: needed }
  }
  // Checked before the limits, so that a waiting node does not use up the limits of others.
  const [pod] = unneeded.drain.awaited
  return pod === undefined ? undefined : { kind: 'BlockedByOnCompletionPod', pod }
}

interface Limits {
  readonly input: ChoiceInput
  /** How many more nodes each group can lose. */
  readonly removable: Map<string, number>
  readonly floor: ResourceFloor
}

function limitReason(
  { node, groupId }: UnneededNode,
  { input, removable, floor }: Limits,
): UnremovableReason | undefined {
  const group = input.groups.get(groupId)
  const room = removable.get(groupId)
  if (group === undefined || room === undefined) {
    return { kind: 'UnexpectedError', message: `node group ${groupId} is not known` }
  }
  if (room <= 0) return { kind: 'NodeGroupMinSizeReached', groupId, minSize: group.minSize }
  const resource = floor.take(node)
  if (resource !== undefined) return { kind: 'MinimalResourceLimitExceeded', resource }
  removable.set(groupId, room - 1)
  return undefined
}

interface CropInput<T> {
  readonly empty: readonly T[]
  readonly drain: readonly T[]
  readonly inProgress: number
  /** How many of these are being drained. */
  readonly draining: number
  readonly maxParallelism: number
  readonly maxDrainParallelism: number
}

/** Empty nodes come first; nodes with pods share the rest of the limit. */
export function crop<T>(input: CropInput<T>): { readonly empty: readonly T[]; readonly drain: readonly T[] } {
  const room = Math.max(0, input.maxParallelism - input.inProgress)
  const empty = input.empty.slice(0, room)
  const drainRoom = Math.min(room - empty.length, input.maxDrainParallelism - input.draining)
  return { empty, drain: input.drain.slice(0, Math.max(0, drainRoom)) }
}
