/** Whether it matters which of the planned nodes a pod lands on (planned-placement.md). */
import type { Pod } from '@tenon/api'
import { podRequests, type SchedulingResult } from '@tenon/engine'
import { controllerOf } from '../cluster/pods/pods.ts'

/**
 * Tells in steps whether the Kubernetes scheduler could spoil the plan. It cannot when there is only
 * one node to go to, or when all pods are alike: then any pod may take the place of any other.
 */
export function* needsSteering({
  placements,
  claims,
}: Pick<SchedulingResult, 'placements' | 'claims'>): Generator<undefined, boolean, undefined> {
  const nodes = new Set(placements.map(({ node }) => node))
  if (nodes.size + claims.length < 2) return false
  let first: string | undefined
  for (const pods of [placements.map(({ pod }) => pod), ...claims.map((claim) => claim.pods)]) {
    for (const pod of pods) {
      const shape = shapeOf(pod)
      first ??= shape
      if (shape !== first) return true
      yield
    }
  }
  return false
}

/** Equal for pods that can take each other's place, whatever others ask of them. */
export function likenessOf(pod: Pod): string {
  return JSON.stringify([controllerOf(pod)?.uid, pod.metadata.labels, shapeOf(pod)])
}

/** Equal for pods that ask the same of a node. Volumes have names of their own even in pods that are alike. */
export function shapeOf({ metadata, spec, status }: Pod): string {
  return JSON.stringify([
    metadata.namespace,
    podRequests(spec, status),
    spec.nodeSelector,
    spec.affinity,
    spec.tolerations,
    spec.topologySpreadConstraints,
    spec.priority,
    spec.containers.map(({ ports }) => ports),
    (spec.volumes ?? []).map((volume) => volume.persistentVolumeClaim),
  ])
}
