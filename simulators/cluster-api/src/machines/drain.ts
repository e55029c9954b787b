/** Drains Nodes like Cluster API before a machine is removed (cluster-api.md 18). */
import { kinds, type Node, type Pod } from '@tenon/api'
import { ApiError, type LocalApi } from '@tenon/devcluster'

/** One attempt: cordons the Node and evicts its pods. Returns whether no pod is left to evict. */
export function drainOnce(workload: LocalApi, node: Node): boolean {
  const { name } = node.metadata
  if (node.spec?.unschedulable !== true)
    workload.patch(kinds.node, undefined, name, { spec: { unschedulable: true } })
  // A kubelet that does not respond ends no pod.
  const isReachable = isNodeReady(node)
  const there = workload
    .list(kinds.pod)
    .filter((pod) => pod.spec.nodeName === name && hasToGo(pod))
    .filter(({ metadata }) => isReachable || metadata.deletionTimestamp === undefined)
  for (const { metadata } of there)
    if (metadata.deletionTimestamp === undefined) evict(workload, metadata.namespace ?? '', metadata.name)
  return there.length === 0
}

export const isNodeReady = ({ status }: Node): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')

function hasToGo({ metadata, status }: Pod): boolean {
  const isDaemon = metadata.ownerReferences?.some(
    ({ controller, kind }) => controller === true && kind === 'DaemonSet',
  )
  const isStatic = Object.hasOwn(metadata.annotations ?? {}, 'kubernetes.io/config.mirror')
  const isFinished = status?.phase === 'Succeeded' || status?.phase === 'Failed'
  return isDaemon !== true && !isStatic && !isFinished
}

function evict(workload: LocalApi, namespace: string, name: string): void {
  try {
    workload.evict(namespace, name)
  } catch (error) {
    // A PodDisruptionBudget does not allow it, or the pod is gone.
    if (!(error instanceof ApiError) || (error.code !== 429 && error.code !== 404)) throw error
  }
}
