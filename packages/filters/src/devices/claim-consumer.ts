/** For whom a ResourceClaim is reserved when a pod uses it. */
import { type Pod, podGroupKinds, type ResourceClaim } from '@tenon/api'

type Consumer = NonNullable<NonNullable<ResourceClaim['status']>['reservedFor']>[number]

/**
 * The PodGroup that the claim was created for, if the pod belongs to it, as all of its pods share the claim (gangs.md
 * 5.2). Otherwise the pod.
 */
export function consumerOf({ metadata }: ResourceClaim, pod: Pod): Consumer {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  const [ofKubernetes] = podGroupKinds.kubernetes
  if (
    ofKubernetes !== undefined &&
    owner?.kind === ofKubernetes.kind &&
    owner.name === pod.spec.schedulingGroup?.podGroupName
  )
    return { apiGroup: ofKubernetes.group, resource: ofKubernetes.plural, name: owner.name, uid: owner.uid }
  return { resource: 'pods', name: pod.metadata.name, uid: pod.metadata.uid ?? '' }
}
