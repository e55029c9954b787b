/** Which nodes may be disrupted at all, whatever the reason (disruption.md 3). */
import { annotations, labels, type Node, type NodeClaim } from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import { labelsOf, type StateNode } from '../../state/state-node.ts'
import { doNotDisrupt, isActive, isPausedByBudget } from '../../state/pods.ts'

/** A node that may go, with everything known to be there. */
export type Candidate = StateNode & { readonly node: Node; readonly claim: NodeClaim; readonly pool: string }

/** Initialized nodes that nothing but their pods could keep, in order of name. */
export function candidates({ state }: OperatorContext): readonly Candidate[] {
  return state.stateNodes().flatMap((machine): readonly Candidate[] => {
    const { node, claim, providerID, isInitialized, isMarkedForDeletion } = machine
    const pool = labelsOf(machine)[labels.nodePool] ?? ''
    const mayGo =
      isInitialized &&
      !isMarkedForDeletion &&
      node?.metadata.deletionTimestamp === undefined &&
      !state.isNominated(providerID) &&
      node?.metadata.annotations?.[annotations.doNotDisrupt] !== 'true'
    if (node === undefined || claim === undefined || pool === '' || !mayGo) return []
    return [{ ...machine, node, claim, pool }]
  })
}

/** Whether a pod of the node, or a budget of its pods, keeps the node where it is for now. */
export function isHeldByPods({ state, caches, clock }: OperatorContext, { node }: Candidate): boolean {
  const pods = state.podsOn(node.metadata.name)
  const now = clock.now()
  return (
    pods.some((pod) => isActive(pod) && doNotDisrupt(pod, now).kind === 'active') ||
    pods.some((pod) => isPausedByBudget(pod, caches.podDisruptionBudgets.list(), now))
  )
}
