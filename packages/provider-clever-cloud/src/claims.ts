/** Reads the NodeGroup of a NodeClaim. */
import { isConditionTrue, type NodeClaim } from '@tenon/api'
import { nodeGroupIn } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'

/** Whether it is a launched claim of this provider whose node has not registered. */
export function isAwaited(claim: NodeClaim): boolean {
  const { nodeClassRef: ref } = (claim.spec as Partial<NodeClaim['spec']> | undefined) ?? {}
  return (
    ref?.group === cleverNodeClassKind.group &&
    ref.kind === cleverNodeClassKind.kind &&
    claim.metadata.deletionTimestamp === undefined &&
    isConditionTrue(claim, 'Launched') &&
    !isConditionTrue(claim, 'Registered')
  )
}

/** The name of its NodeGroup. */
export function groupOf({ metadata, status }: NodeClaim): string {
  return nodeGroupIn(status?.providerID ?? '') ?? metadata.name
}
