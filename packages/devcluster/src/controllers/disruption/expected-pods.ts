import { apiVersionOf, type KubeObject, type OwnerReference, type Pod, ownValue } from '@tenon/api'
import type { LocalApi, ResourceDefinition } from '../../contract.ts'
import { controllerOf } from '../objects/owners.ts'

export type ExpectedPods =
  | { readonly kind: 'counted'; readonly count: number }
  | { readonly kind: 'unknown'; readonly message: string }

/** How many pods the controllers of `pods` want, from their scale. */
export function expectedPods(api: LocalApi, pods: readonly Pod[]): ExpectedPods {
  const definitions = api.definitions()
  const seen = new Map<string, number>()
  const owners = new Set<string>()
  for (const pod of pods) {
    const owner = controllerOf(pod)
    if (owner === undefined) {
      const message = `found no controller ref for pod "${pod.metadata.name}"`
      return { kind: 'unknown', message }
    }
    if (owners.has(owner.uid)) continue
    owners.add(owner.uid)
    const namespace = pod.metadata.namespace ?? ''
    const scaled = scaleOf(api, definitions, namespace, owner)
    if (scaled === 'noScale') {
      const message = `${owner.apiVersion}, Kind=${owner.kind} does not implement the scale subresource`
      return { kind: 'unknown', message }
    }
    if (scaled !== 'gone') seen.set(scaled.uid, scaled.replicas)
  }
  return { kind: 'counted', count: [...seen.values()].reduce((sum, replicas) => sum + replicas, 0) }
}

/** The scale of a controller; for ReplicaSets of a Deployment that of the Deployment. */
function scaleOf(
  api: LocalApi,
  definitions: readonly ResourceDefinition[],
  namespace: string,
  owner: OwnerReference,
): { uid: string; replicas: number } | 'noScale' | 'gone' {
  const definition = definitions.find(
    (each) => each.kind === owner.kind && apiVersionOf(each) === owner.apiVersion,
  )
  if (definition === undefined) return 'noScale'
  const object = api.get(definition, namespace, owner.name)
  if (object === undefined || object.metadata.uid !== owner.uid) return 'gone'
  const above = controllerOf(object)
  if (owner.kind === 'ReplicaSet' && above?.kind === 'Deployment') {
    return scaleOf(api, definitions, namespace, above)
  }
  if (definition.scale === undefined) return 'noScale'
  const replicas = numberAt(object, definition.scale.specReplicasPath)
  return { uid: owner.uid, replicas: replicas ?? 0 }
}

function numberAt(object: KubeObject, path: string): number | undefined {
  let value: unknown = object
  for (const part of path.split('.').filter((each) => each !== '')) {
    value = ownValue(value as Record<string, unknown> | undefined, part)
  }
  return typeof value === 'number' ? value : undefined
}
