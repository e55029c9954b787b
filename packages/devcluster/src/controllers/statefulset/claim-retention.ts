import { kinds, type OwnerReference, type Pod } from '@tenon/api'
import { controllerReference } from '../objects/owners.ts'
import { type Claim, type StatefulSet, workloads } from '../objects/workloads.ts'

/**
 * A claim with the owner of `persistentVolumeClaimRetentionPolicy`: the set if it is deleted with the set, the pod if
 * it is deleted on scale-down. A claim with another controller is not changed.
 */
export function ownedClaim(claim: Claim, set: StatefulSet, pod: Pod, isCondemned: boolean): Claim {
  const before = claim.metadata.ownerReferences ?? []
  const isOurs = ({ uid }: OwnerReference) => uid === set.metadata.uid || uid === pod.metadata.uid
  const others = before.filter((owner) => !isOurs(owner))
  const isControlled = others.some((owner) => owner.controller === true)
  const owner = isControlled ? undefined : ownerOf(set, pod, isCondemned)
  const ours = before.filter(isOurs)
  const isRight = owner === undefined ? ours.length === 0 : ours.length === 1 && sameOwner(ours[0], owner)
  if (isRight) return claim
  const ownerReferences = owner === undefined ? others : [...others, owner]
  return { ...claim, metadata: { ...claim.metadata, ownerReferences } }
}

function sameOwner(one: OwnerReference | undefined, other: OwnerReference): boolean {
  return one?.uid === other.uid && one.controller === true
}

function ownerOf(set: StatefulSet, pod: Pod, isCondemned: boolean): OwnerReference | undefined {
  const policy = set.spec.persistentVolumeClaimRetentionPolicy
  if (policy?.whenScaled === 'Delete' && isCondemned) return controllerReference(pod, kinds.pod)
  return policy?.whenDeleted === 'Delete' ? controllerReference(set, workloads.statefulSet) : undefined
}

/** Whether a claim is being deleted with an earlier pod of that name: the next pod needs a new claim. */
export function isStaleClaim(claim: Claim, set: StatefulSet, podName: string): boolean {
  if (set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled !== 'Delete') return false
  return claim.metadata.ownerReferences?.some(({ kind, name }) => kind === 'Pod' && name === podName) === true
}
