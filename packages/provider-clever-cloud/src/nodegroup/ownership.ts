/** Whose a NodeGroup is (clever-cloud.md 4). */
import { karpenterKinds, type NodeClaim, ownValue } from '@tenon/api'
import { ownNames } from '../names.ts'
import type { NodeGroup } from './types.ts'

/** Whether Tenon, or the Go provider, made the group; by itself this proves no ownership. */
export function isManaged({ metadata }: NodeGroup): boolean {
  return ownValue(metadata.labels, ownNames.managed) === 'true'
}

/** The claim that the group was made for, as its label says; the group is called like it. */
export function labelledClaim({ metadata }: NodeGroup): string {
  const labelled = ownValue(metadata.labels, ownNames.nodeClaim) ?? ''
  return labelled === '' ? metadata.name : labelled
}

/** A NodeClaim among the owners of a group. */
export interface OwningClaim {
  readonly name: string
  readonly uid: string
}

/** The NodeClaims, of any version, among the owners of a group. */
export function owningClaims({ metadata }: NodeGroup): readonly OwningClaim[] {
  return (metadata.ownerReferences ?? []).flatMap(({ apiVersion, kind, name, uid }) =>
    kind === karpenterKinds.nodeClaim.kind && apiVersion.startsWith(`${karpenterKinds.nodeClaim.group}/`)
      ? [{ name, uid }]
      : [],
  )
}

/** Whether a claim owns the group: the labels say so, and the owner references. */
export function isOwnedBy(group: NodeGroup, claim: NodeClaim): boolean {
  const { name, uid } = claim.metadata
  return (
    isManaged(group) &&
    labelledClaim(group) === name &&
    owningClaims(group).some((owner) => owner.name === name && (uid === undefined || owner.uid === uid))
  )
}
