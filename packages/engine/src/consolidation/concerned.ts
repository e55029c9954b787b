/** Which candidates for which nothing was found lately are worth another look. */
import type { NodeFill } from '../scheduling/nodes/node-fill.ts'
import type { PodShape } from '../scheduling/pods/pod-shape.ts'
import { amountsFit } from '../scheduling/pods/resource-space.ts'
import type { ConsolidationQuestion } from './question.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/**
 * Settled candidates with pods that fit on a roomier node, or about which more than amounts decides: rules of pods, or what
 * their NodePool as a whole has, which Balanced ones weigh moves against.
 */
export function concernedBy(
  whatIf: WhatIf,
  { settled, roomier }: Pick<ConsolidationQuestion, 'settled' | 'roomier'>,
): readonly Candidate[] {
  if (settled === undefined || roomier === undefined) return []
  const nodes = whatIf.nodes.all.filter(({ input }) => roomier.has(input.name))
  const known = new Map<PodShape, readonly NodeFill[]>()
  const takers = (shape: PodShape): readonly NodeFill[] => {
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
            takers(whatIf.compiled.shapeOf(pod)).some((node) => node !== candidate.node),
        )),
  )
}
