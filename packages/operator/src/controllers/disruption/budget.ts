/** What the budgets of a NodePool leave for now (disruption.md 6). */
import { type DisruptionReason, isConditionTrue, labels, type NodePool } from '@tenon/api'
import { allowedDisruptions } from '@tenon/engine'
import type { OperatorContext } from '../../context.ts'
import { isNodeReady } from '../../state/state-node.ts'

const defaultBudgets = [{ nodes: '10%' }]

/** How many more nodes of the pool may be disrupted now. Nodes that are gone, going or not Ready use budgets up. */
export function remainingDisruptions(
  { state, clock }: OperatorContext,
  { metadata, spec }: NodePool,
  reason: DisruptionReason,
): number {
  const counted = state
    .stateNodes()
    .filter(
      ({ node, claim, isInitialized }) =>
        node?.metadata.labels?.[labels.nodePool] === metadata.name &&
        claim !== undefined &&
        isInitialized &&
        !isConditionTrue(claim, 'InstanceTerminating'),
    )
  const disrupting = counted.filter(
    ({ node, isMarkedForDeletion }) => isMarkedForDeletion || (node && !isNodeReady(node)),
  )
  const budgets = spec.disruption?.budgets ?? defaultBudgets
  const allowed = allowedDisruptions(budgets, reason, counted.length, clock.now())
  return Math.max(0, allowed - disrupting.length)
}
