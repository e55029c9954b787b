import {
  accepted,
  type AutoscalerFlag,
  type FlagGroup,
  withoutEffect,
  withoutEffectIfChanged,
  working,
} from '../flag.ts'

const clusterApi = 'clusterapi'
/** Flags whose names contain that of a cloud. */
export const authoritativeFlag = 'clusterapi-cloud-config-authoritative'
export const anyVictimFlag = 'clusterapi-machinepool-any-victim'

/** Flags that only Cluster API reads. */
const ofClusterApi: readonly AutoscalerFlag[] = [
  ...working(
    [
      'node-group-auto-discovery',
      'texts',
      '',
      'clusterapi:KEY=VALUE,... with namespace, clusterName and labels of the objects that are node groups',
    ],
    [
      authoritativeFlag,
      'boolean',
      'false',
      'the management cluster is that of the pod, not that of --kubeconfig, unless --cloud-config names it',
    ],
    [
      anyVictimFlag,
      'boolean',
      'false',
      'remove nodes of MachinePools without Machines by reducing replicas: the infrastructure picks the node',
    ],
    [
      'gpu-total',
      'texts',
      '',
      'TYPE:MIN:MAX, how many GPUs of a type the cluster may have; once for each type',
    ],
  ).map((flag) => ({ ...flag, only: { cloud: clusterApi, elsewhere: 'warns' } as const })),
  ...working(['cloud-config', 'text', '', 'kubeconfig of the management cluster']).map((flag) => ({
    ...flag,
    only: { cloud: clusterApi, elsewhere: 'quiet' } as const,
  })),
]

const ofAnnotations = {
  cloud: clusterApi,
  reason: 'the annotations of its objects set minimum and maximum',
}

export const cloudFlags: FlagGroup = {
  title: 'Cloud and node groups',
  flags: [
    ...working(
      ['cloud-provider', 'text', '', 'cloud whose node groups are scaled'],
      [
        'dry-run',
        'boolean',
        'false',
        'decide and tell, but change nothing, neither in the cluster nor in the cloud',
      ],
    ),
    ...working(
      ['nodes', 'texts', '', 'MIN:MAX:NAME of a node group; once for each'],
      [
        'allow-scale-to-zero',
        'boolean',
        'false',
        'admit MIN 0 in --nodes, and find nodepools named there that have no node',
      ],
    ).map((flag) => ({ ...flag, except: ofAnnotations })),
    ...ofClusterApi,
    ...accepted(
      ['cluster-name', 'text', '', 'name of the cluster'],
      ['regional', 'boolean', 'false', 'whether the cluster is regional'],
      ['user-agent', 'text', 'cluster-autoscaler', 'what other clouds are told of the client'],
    ),
    ...withoutEffect(
      ['aws-use-static-instance-list', 'boolean', 'false', 'of another cloud'],
      ['bulk-mig-instances-listing-enabled', 'boolean', 'false', 'of another cloud'],
      ['gce-concurrent-refreshes', 'integer', '1', 'of another cloud'],
      ['gce-mig-instances-min-refresh-wait-time', 'duration', '5s', 'of another cloud'],
      ['gce-expander-ephemeral-storage-support', 'boolean', 'false', 'of another cloud'],
      ['cloud-provider-gce-*', 'text', '', 'of another cloud'],
      ['node-autoprovisioning-enabled', 'boolean', 'false', 'groups are not made or deleted'],
      ['max-autoprovisioned-node-group-count', 'integer', '15', 'groups are not made or deleted'],
    ),
    ...withoutEffectIfChanged(['async-node-groups', 'boolean', 'false', 'groups are not made or deleted']),
  ],
}

export const kubernetesFlags: FlagGroup = {
  title: 'Kubernetes API',
  flags: [
    ...working(
      ['namespace', 'text', 'kube-system', 'where the lease, the status and the priorities are'],
      ['kubeconfig', 'text', '', 'kubeconfig to use instead of what a pod is given'],
      ['kubernetes', 'text', '', 'URL of the API server, with inClusterConfig, auth and useServiceAccount'],
      [
        'accept-cluster-identity',
        'boolean',
        'false',
        'take the cluster for the right one even when the lease is that of another, or its identity may not be read; give it once',
      ],
      ['kube-client-qps', 'number', '5', 'requests a second'],
      ['kube-client-burst', 'integer', '10', 'requests at once'],
    ),
    ...accepted(['kube-api-content-type', 'text', 'application/vnd.kubernetes.protobuf', 'JSON is used']),
  ],
}

export const leaderFlags: FlagGroup = {
  title: 'Leader election',
  flags: [
    ...working(
      ['leader-elect', 'boolean', 'true', 'act only while holding a lease'],
      ['leader-elect-lease-duration', 'duration', '15s', 'how long others wait after a renewal'],
      ['leader-elect-renew-deadline', 'duration', '10s', 'who cannot renew for so long ends'],
      ['leader-elect-retry-period', 'duration', '2s', 'pause between attempts'],
      ['leader-elect-resource-lock', 'text', 'leases', 'only leases'],
      ['leader-elect-resource-name', 'text', 'cluster-autoscaler', 'name of the lease'],
    ),
    ...accepted(['leader-elect-resource-namespace', 'text', '', 'the lease is in --namespace']),
  ],
}

export const loopFlags: FlagGroup = {
  title: 'Loop',
  flags: working(
    ['scan-interval', 'duration', '10s', 'pause between two loops'],
    ['frequent-loops-enabled', 'boolean', 'true', 'start at once for new pods and after changes'],
    ['new-pod-scale-up-delay', 'duration', '0s', 'pods younger than this wait'],
    [
      'expendable-pods-priority-cutoff',
      'integer',
      '-10',
      'pods of lower priority neither get nodes nor keep them',
    ],
    ['allowed-scheduler-names', 'commas', '', 'only pods of these schedulers count'],
    ['bypassed-scheduler-names', 'commas', '', 'pods of these schedulers count before they were tried'],
    [
      'scheduler-config-file',
      'text',
      '',
      'configuration of kube-scheduler, with one profile; its default spread is kept to',
    ],
    ['scale-up-from-zero', 'boolean', 'true', 'scale up while no node is ready'],
    ['enforce-node-group-min-size', 'boolean', 'false', 'raise groups that are below their minimum'],
  ),
}

export const healthFlags: FlagGroup = {
  title: 'State of nodes and groups',
  flags: [
    ...working(
      ['startup-taint', 'texts', '', 'key of a taint of nodes that are not ready yet'],
      ['startup-taint-prefix', 'texts', '', 'prefix of such keys'],
      ['status-taint', 'texts', '', 'key of a taint that new nodes will not have'],
      ['ignore-taint', 'texts', '', 'deprecated: as --startup-taint'],
      ['max-node-provision-time', 'duration', '15m', 'a node that was asked for has so long to register'],
      ['max-node-startup-time', 'duration', '15m', 'a new node has so long to be ready'],
      ['ok-total-unready-count', 'integer', '3', 'so many unready nodes are no concern'],
      ['max-total-unready-percentage', 'number', '45', 'beyond this share nothing is scaled'],
      ['initial-node-group-backoff-duration', 'duration', '5m', 'pause of a group after its first failure'],
      ['max-node-group-backoff-duration', 'duration', '30m', 'longest pause of a group'],
      ['node-group-backoff-reset-timeout', 'duration', '3h', 'failures so long ago are forgotten'],
      ['force-delete-unregistered-nodes', 'boolean', 'false', 'remove these below the minimum size, too'],
      [
        'force-delete-failed-nodes',
        'boolean',
        'false',
        'remove those that could not be made below the minimum, too',
      ],
    ),
  ],
}
