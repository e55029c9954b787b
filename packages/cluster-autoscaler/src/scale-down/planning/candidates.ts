/** Which nodes are checked for removal, in which order (cluster-autoscaler.md 6.1). */
import type { Node } from '@tenon/api'
import type { NodeGroupIndex } from '../../model.ts'
import type { Emptiness } from '../drain/node-drain.ts'
import type { UnremovableNode, UnremovableReason } from '../reasons.ts'

export interface Candidates {
  readonly nodes: readonly Node[]
  readonly others: readonly UnremovableNode[]
}

interface CandidateInput {
  readonly nodes: readonly Node[]
  readonly index: NodeGroupIndex
  readonly emptinessOf: (node: Node) => Emptiness
  /** Whether the node was removable in the last loop. */
  readonly wasUnneeded: (node: Node) => boolean
  /** By group id: until when it is left alone (`--scale-down-delay-type-local`). */
  readonly delayedUntilMs: ReadonlyMap<string, number>
}

const ranks: Readonly<Record<Emptiness, number>> = { empty: 0, waiting: 1, occupied: 3 }

/** Empty nodes first, then those of the last loop, so that choices are stable. */
export function* candidatesOf(input: CandidateInput): Generator<undefined, Candidates, undefined> {
  const ranked: { readonly node: Node; readonly rank: number }[] = []
  const others: UnremovableNode[] = []
  for (const node of input.nodes) {
    yield
    const reason = refusal(node, input)
    if (reason !== undefined) {
      others.push({ nodeName: node.metadata.name, reason })
      continue
    }
    const rank = ranks[input.emptinessOf(node)]
    ranked.push({ node, rank: input.wasUnneeded(node) ? Math.min(rank, 2) : rank })
  }
  const nodes = ranked.toSorted((a, b) => a.rank - b.rank || byName(a.node, b.node)).map(({ node }) => node)
  return { nodes, others }
}

function refusal(node: Node, { index, delayedUntilMs }: CandidateInput): UnremovableReason | undefined {
  const { name } = node.metadata
  const unresolved = index.unresolved.get(name)
  if (unresolved !== undefined) return { kind: 'UnexpectedError', message: unresolved }
  const groupId = index.groupOf.get(name)
  if (groupId === undefined) return { kind: 'NotAutoscaled' }
  const fault = index.faults.get(groupId)
  if (fault !== undefined) return { kind: 'UnexpectedError', message: fault }
  const group = index.groups.get(groupId)
  if (group === undefined) return { kind: 'UnexpectedError', message: `node group ${groupId} is not known` }
  const hold = index.holds.get(groupId)
  if (hold !== undefined) return { kind: 'NodeGroupHeld', groupId, reason: hold.reason }
  if (group.targetSize <= group.minSize) {
    return { kind: 'NodeGroupMinSizeReached', groupId, minSize: group.minSize }
  }
  const untilMs = delayedUntilMs.get(groupId)
  return untilMs === undefined ? undefined : { kind: 'NotUnneededOtherReason', groupId, untilMs }
}

function byName(a: Node, b: Node): number {
  return a.metadata.name < b.metadata.name ? -1 : 1
}
