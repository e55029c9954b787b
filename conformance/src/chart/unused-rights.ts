/** Rights of the chart that are not seen to be used, each with what it is for. */

/** Used, but not by a run that only provisions, drains and removes nodes. */
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

/** What no request shows. */
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
  'watch autoscaling.x-k8s.io/provisioningrequests': 'ProvisioningRequests, where they are served',
  'patch autoscaling.x-k8s.io/provisioningrequests/status': 'ProvisioningRequests, where they are served',
}

/**
 * Those of `unused` that are not on the list. Of what is watched, lists are for API servers that do not stream the first
 * state, and reads by name for lists that lack what is known.
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
