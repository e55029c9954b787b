/** The owner of a NodeGroup (clever-cloud.md 4). */
import { karpenterKinds, type NodeClaim, ownValue } from '@tenon/api'
import { ownNames } from '../names.ts'
import type { NodeGroup } from './types.ts'

/** Whether Tenon or the Go provider created the group. That alone does not prove ownership. */
export function isManaged({ metadata }: NodeGroup): boolean {
  return ownValue(metadata.labels, ownNames.managed) === 'true'
}

/** The claim in the group's label; the group has the same name. */
export function labelledClaim({ metadata }: NodeGroup): string {
  const labelled = ownValue(metadata.labels, ownNames.nodeClaim) ?? ''
  return labelled === '' ? metadata.name : labelled
}

/** A NodeClaim in the owner references of a group. */
export interface OwningClaim {
  readonly name: string
  readonly uid: string
}

/** NodeClaims, of any version, in the owner references of a group. */
export function owningClaims({ metadata }: NodeGroup): readonly OwningClaim[] {
  return (metadata.ownerReferences ?? []).flatMap(({ apiVersion, kind, name, uid }) =>
    kind === karpenterKinds.nodeClaim.kind && apiVersion.startsWith(`${karpenterKinds.nodeClaim.group}/`)
      ? [{ name, uid }]
      : [],
  )
}

/** Whether a claim owns the group, by labels and owner references. */
export function isOwnedBy(group: NodeGroup, claim: NodeClaim): boolean {
  const { name, uid } = claim.metadata
  return (
    isManaged(group) &&
    labelledClaim(group) === name &&
    owningClaims(group).some((owner) => owner.name === name && (uid === undefined || owner.uid === uid))
  )
}
