/** Names that users and tools know (cluster-autoscaler.md 2.6, 6, 7). */

export const toBeDeletedTaint = 'ToBeDeletedByClusterAutoscaler'
export const deletionCandidateTaint = 'DeletionCandidateOfClusterAutoscaler'

const domain = 'cluster-autoscaler.kubernetes.io'

export const annotations = {
  scaleDownDisabled: `${domain}/scale-down-disabled`,
  safeToEvict: `${domain}/safe-to-evict`,
  safeToEvictLocalVolumes: `${domain}/safe-to-evict-local-volumes`,
  podScaleUpDelay: `${domain}/pod-scale-up-delay`,
  enableDaemonSetEviction: `${domain}/enable-ds-eviction`,
  daemonSetPod: `${domain}/daemonset-pod`,
  lastUpdated: `${domain}/last-updated`,
  upcomingNode: 'cluster-autoscaler.k8s.io/upcoming-node',
  /** Tenon's own: the node was cordoned before its deletion began, and stays cordoned if that fails. */
  cordonedBefore: 'cluster-autoscaler.tenon.sh/cordoned-before',
  mirror: 'kubernetes.io/config.mirror',
} as const

/** Annotations with this prefix delay the deletion of a node. */
export const delayDeletionPrefix = `delay-deletion.${domain}/`

export const templateNodeLabel = `${domain}/template-node`
export const eventSource = 'cluster-autoscaler'
export const priorityExpanderConfigMap = 'cluster-autoscaler-priority-expander'
