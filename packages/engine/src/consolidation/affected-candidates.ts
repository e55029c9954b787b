/** Settled candidates that a change elsewhere in the cluster may concern. */
import type { NodeFill } from '../scheduling/nodes/node-fill.ts'
import type { PodShape } from '../scheduling/pods/pod-shape.ts'
import { amountsFit } from '../scheduling/pods/resource-space.ts'
import type { ConsolidationQuestion } from './question.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/**
 * Settled candidates with pods that fit on a node with more room now, or whose removal does not depend on resources alone:
 * rules about other pods bind their pods, or Balanced weighs moves against the totals of their NodePool.
 */
export function affectedCandidates(
  whatIf: WhatIf,
  { settled, roomier }: Pick<ConsolidationQuestion, 'settled' | 'roomier'>,
): readonly Candidate[] {
  if (settled === undefined || roomier === undefined) return []
  const nodes = whatIf.nodes.all.filter(({ input }) => roomier.has(input.name))
  const known = new Map<PodShape, readonly NodeFill[]>()
  const nodesFor = (shape: PodShape): readonly NodeFill[] => {
    const found =
      known.get(shape) ??
      nodes.filter((node) => amountsFit(shape.amounts, node.remaining) && whatIf.nodes.suits(node, shape))
    known.set(shape, found)
    return found
  }
  return whatIf.candidates.filter(
    (candidate) =>
      settled.has(candidate.input.node) &&
      (candidate.input.policy === 'Balanced' ||
        candidate.pods.some(
          (pod) =>
            !whatIf.isPlain(pod) ||
            nodesFor(whatIf.compiled.shapeOf(pod)).some((node) => node !== candidate.node),
        )),
  )
}
