import { kinds, type KubeObject, type Pod, type PodTemplateSpec, type ResourceType } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { controllerReference } from './owners.ts'

/** A pod of `owner` from its template; without `name` the API server generates one. */
export function podFromTemplate(
  owner: KubeObject,
  ownerType: ResourceType,
  template: PodTemplateSpec,
  name?: string,
): Pod {
  const { labels, annotations, ...rest } = (template.metadata ?? {}) as NonNullable<
    PodTemplateSpec['metadata']
  > & {
    readonly finalizers?: readonly string[]
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: name ?? '',
      ...(name === undefined && { generateName: `${owner.metadata.name}-` }),
      namespace: owner.metadata.namespace ?? 'default',
      ...(labels !== undefined && { labels }),
      ...(annotations !== undefined && { annotations }),
      ...(rest.finalizers !== undefined && { finalizers: rest.finalizers }),
      ownerReferences: [controllerReference(owner, ownerType)],
    },
    spec: template.spec,
  }
}

/** Creates a pod and records an event on its owner. Throws the API's error, after recording it. */
export function createPod(context: ControllerContext, component: string, owner: KubeObject, pod: Pod): Pod {
  try {
    const created = context.store.create(kinds.pod, pod)
    const message = `Created pod: ${created.metadata.name}`
    context.events.record(component, owner, 'Normal', 'SuccessfulCreate', message)
    return created
  } catch (error) {
    const message = `Error creating: ${(error as Error).message}`
    context.events.record(component, owner, 'Warning', 'FailedCreate', message)
    throw error
  }
}

/** Deletes a pod and records an event on its owner. */
export function deletePod(context: ControllerContext, component: string, owner: KubeObject, pod: Pod): void {
  if (!context.store.delete(kinds.pod, pod)) return
  const message = `Deleted pod: ${pod.metadata.name}`
  context.events.record(component, owner, 'Normal', 'SuccessfulDelete', message)
}
