/** The rules that can reject a node, named like kube-scheduler's plugins. */
export type FilterName =
  | 'NodeUnschedulable'
  | 'NodeName'
  | 'TaintToleration'
  | 'NodeAffinity'
  | 'NodeDeclaredFeatures'
  | 'NodePorts'
  | 'NodeResourcesFit'
  | 'VolumeRestrictions'
  | 'NodeVolumeLimits'
  | 'VolumeBinding'
  | 'VolumeZone'
  | 'DynamicResources'
  | 'PodTopologySpread'
  | 'InterPodAffinity'
  /** Filters in addition to those of Kubernetes. */
  | 'Extra'

/** Why a node is rejected for a pod. */
export interface Rejection {
  readonly filter: FilterName
  /** Worded as in `kubectl describe`. */
  readonly reasons: readonly string[]
  /** Whether removing pods from the node could help. */
  readonly helpedByPreemption: boolean
}

/** For example `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.` */
export function unavailableMessage(total: number, reasons: Iterable<readonly string[]>): string {
  if (total === 0) return 'no nodes available to schedule pods'
  const counts = new Map<string, number>()
  for (const list of reasons) for (const reason of list) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`).toSorted()
  return `0/${total} nodes are available: ${parts.join(', ')}.`
}
