/** Rights of the chart that the suite does not use, each with its purpose. */

/** Used, but not if nodes are only launched, drained and removed. */
export const rightsOfRareNeeds: Readonly<Record<string, string>> = {
  'delete karpenter.sh/nodeclaims': 'removing nodes that are not needed, and claims that never became nodes',
  'delete pods': 'a drain that has reached its terminationGracePeriod',
  'get karpenter.sh/nodeclaims': 'a claim that was to be made exists already',
  'create resource.k8s.io/resourceslices': 'devices of simulated nodes whose instance types have some',
  'delete resource.k8s.io/resourceslices': 'devices of simulated nodes whose instance types have some',
  'get nodes': 'an instance that is asked about alone, such as at its end',
  'watch coordination.k8s.io/leases in kube-system': 'a replica that waits while another one leads',
  'create configmaps in kube-system':
    'the controller pauses itself, and there is no ConfigMap tenon-brake yet',
  'patch configmaps in kube-system': 'the controller pauses itself',
  'patch pods/status': 'pods that would take another node than the one planned for them',
  ...Object.fromEntries(
    ['apps/daemonsets', 'batch/jobs', 'batch/cronjobs', 'replicationcontrollers'].map((resource) => [
      `get ${resource}`,
      'workloads that VerticalPodAutoscalers refer to',
    ]),
  ),
}

/** Rights that no request of the audit log shows. */
export const rightsWithoutRequests: Readonly<Record<string, string>> = {
  'update karpenter.sh/nodeclaims/finalizers':
    'asked about by an admission plugin when a Node gets an owner that it holds back',
  'update karpenter.sh/nodepools/finalizers':
    'asked about by an admission plugin when a NodeClaim gets an owner that it holds back',
  ...Object.fromEntries(
    ['scheduling.k8s.io', 'scheduling.x-k8s.io', 'scheduling.volcano.sh'].map((group) => [
      `watch ${group}/podgroups`,
      'PodGroups, where a feature of Kubernetes or another scheduler serves them',
    ]),
  ),
  'patch autoscaling.x-k8s.io/capacityquotas/status': 'CapacityQuotas, where there are some',
  'watch autoscaling.x-k8s.io/provisioningrequests': 'ProvisioningRequests, where they are served',
  'patch autoscaling.x-k8s.io/provisioningrequests/status': 'ProvisioningRequests, where they are served',
}

/**
 * Unused rights that are not listed here. For watched kinds, `list` is for API servers without streaming lists,
 * and `get` for lists that lack a known object.
 */
export function unreviewed(
  unused: readonly string[],
  reviewed: Readonly<Record<string, string>>,
): readonly string[] {
  return unused.filter((right) => {
    const watch = right.replace(/^(list|get) /, 'watch ')
    const isCovered = watch !== right && (!unused.includes(watch) || watch in reviewed)
    return !isCovered && !(right in reviewed)
  })
}
