/** Placeholder pods of a ProvisioningRequest, built from its PodTemplates (gangs.md 2.2). */
import { hashString } from '../karpenter/hash.ts'
import type { ProvisioningRequest } from '../karpenter/types.ts'
import type { Pod, PodSpec, PodTemplateSpec } from '../objects.ts'
import { withAdmission } from '../pod-defaults.ts'

/** Marks placeholder pods, which exist only in memory. */
const requestPodAnnotation = 'tenon.sh/provisioning-request-pod'
/**
 * On pods that consume the capacity: the name of the request. The second key is Cluster Autoscaler's deprecated
 * one.
 */
export const consumeAnnotations = [
  'autoscaling.x-k8s.io/consume-provisioning-request',
  'cluster-autoscaler.kubernetes.io/consume-provisioning-request',
] as const
/** On pods that consume the capacity: the class of the request; the second key is deprecated. */
export const classAnnotations = [
  'autoscaling.x-k8s.io/provisioning-class-name',
  'cluster-autoscaler.kubernetes.io/provisioning-class-name',
] as const

/** One pod set of a request. */
export interface RequestSet {
  readonly template: PodTemplateSpec
  readonly count: number
}

/** A limit far above real requests: every pass decides about each of these pods. */
export const mostRequestPods = 10_000

/**
 * The placeholder pods of all sets, in a deterministic order.
 * @param hasClaim whether a PersistentVolumeClaim exists; volumes of missing ones are omitted.
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
          // What differs between pods comes first: the end of a text hardly affects the first digits of its hash.
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

export function isRequestPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[requestPodAnnotation] === 'true'
}

/** The template's spec without fields that would keep a placeholder pod from being placed (gangs.md 8, trap 18). */
function placeableSpec(given: PodSpec, hasClaim: (name: string) => boolean): PodSpec {
  const { nodeName: _, schedulingGates: __, schedulingGroup: ___, volumes = [], ...spec } = given
  const kept = volumes.filter(
    ({ persistentVolumeClaim, ephemeral }) =>
      ephemeral === undefined &&
      (persistentVolumeClaim === undefined || hasClaim(persistentVolumeClaim.claimName)),
  )
  return withAdmission({ ...spec, ...(kept.length > 0 && { volumes: kept }) })
}
