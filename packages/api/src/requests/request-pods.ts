/** Pods that stand for the room of a ProvisioningRequest, made from its PodTemplates (gangs.md 2.2). */
import { hashString } from '../karpenter/hash.ts'
import type { ProvisioningRequest } from '../karpenter/types.ts'
import type { Pod, PodSpec, PodTemplateSpec } from '../objects.ts'
import { withAdmission } from '../pod-defaults.ts'

/** On pods that stand for the room of a ProvisioningRequest and that no API server knows. */
const requestPodAnnotation = 'tenon.sh/provisioning-request-pod'
/** On pods that use the room: the name of the request; the second key is Cluster Autoscaler's former one. */
export const consumeAnnotations = [
  'autoscaling.x-k8s.io/consume-provisioning-request',
  'cluster-autoscaler.kubernetes.io/consume-provisioning-request',
] as const
/** On the same pods: the class of the request; both keys as before. */
export const classAnnotations = [
  'autoscaling.x-k8s.io/provisioning-class-name',
  'cluster-autoscaler.kubernetes.io/provisioning-class-name',
] as const

/** Pods of one set that stand for room. */
export interface RequestSet {
  readonly template: PodTemplateSpec
  readonly count: number
}

/** More than any cluster runs: each is decided about in every pass. */
export const mostRequestPods = 10_000

/**
 * The pods of all sets, in order; always the same for a request with the same templates.
 * @param hasClaim whether a PersistentVolumeClaim is there; volumes of others are left out.
 */
export function requestPods(
  request: ProvisioningRequest,
  sets: readonly RequestSet[],
  hasClaim: (name: string) => boolean,
): readonly (readonly Pod[])[] {
  const { name, namespace = '', uid = '', creationTimestamp } = request.metadata
  return sets.map(({ template, count }, set) => {
    const spec = placeableSpec(template.spec, hasClaim)
    const { labels, annotations } = template.metadata ?? {}
    const notes = {
      ...annotations,
      [requestPodAnnotation]: 'true',
      [consumeAnnotations[0]]: name,
      [classAnnotations[0]]: request.spec.provisioningClassName,
    }
    return Array.from(
      { length: count },
      (_, at): Pod => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `${name}-${set}-${at}`,
          namespace,
          // The last of what is hashed hardly reaches the first digits, by which pods are told apart.
          uid: hashString(`${set}/${at}/${uid}`).toString(16).padStart(16, '0'),
          ...(creationTimestamp !== undefined && { creationTimestamp }),
          ...(labels && { labels }),
          annotations: notes,
          ownerReferences: [
            {
              apiVersion: 'autoscaling.x-k8s.io/v1',
              kind: 'ProvisioningRequest',
              name,
              uid,
              controller: true,
            },
          ],
        },
        spec,
        status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] },
      }),
    )
  })
}

/** Whether the pod only stands for room, and no API server knows it. */
export function isRequestPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[requestPodAnnotation] === 'true'
}

/** A template's spec without what keeps pods of their own from being placed (gangs.md 8, trap 18). */
function placeableSpec(given: PodSpec, hasClaim: (name: string) => boolean): PodSpec {
  const { nodeName: _, schedulingGates: __, schedulingGroup: ___, volumes = [], ...spec } = given
  const kept = volumes.filter(
    ({ persistentVolumeClaim, ephemeral }) =>
      ephemeral === undefined &&
      (persistentVolumeClaim === undefined || hasClaim(persistentVolumeClaim.claimName)),
  )
  return withAdmission({ ...spec, ...(kept.length > 0 && { volumes: kept }) })
}
