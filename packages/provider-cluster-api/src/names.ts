/** Names of labels, annotations and groups (cluster-api.md 1, 3, 6). */

/** API group of ClusterAPINodeClass, and domain of the labels that describe instance types. */
export const providerDomain = 'karpenter.cluster.x-k8s.io'

/** The group of Cluster API unless `CAPI_GROUP` says otherwise. */
export const defaultGroup = 'cluster.x-k8s.io'

/** Labels of nodes that MachineDeployments may carry besides those of Kubernetes. */
export const instanceLabels = {
  size: `${providerDomain}/instance-size`,
  family: `${providerDomain}/instance-family`,
  memory: `${providerDomain}/instance-memory`,
  cpu: `${providerDomain}/instance-cpu`,
  capacityMemory: `capacity.${providerDomain}/memory`,
  capacityCpu: `capacity.${providerDomain}/cpu`,
} as const

/** Names of Tenon's own on objects of the hub. */
export const ownNames = {
  /** Annotation of a Machine: name of the NodeClaim that it is bound to. */
  nodeClaim: 'tenon.sh/nodeclaim',
  /** Annotation of a Machine: UID of that NodeClaim. */
  nodeClaimUid: 'tenon.sh/nodeclaim-uid',
  /** Annotation of a Machine: UID of the namespace kube-system of the cluster that its NodeClaim is in. */
  workloadCluster: 'tenon.sh/workload-cluster',
  /** Annotation of a MachineDeployment: UIDs of Machines that are going and that `spec.replicas` counts no more. */
  released: 'tenon.sh/released-machines',
  /** Annotation of a MachineDeployment: how many of its replicas Tenon asked for. */
  asked: 'tenon.sh/replicas',
} as const

/** Annotations of MachineDeployments that tell what their nodes have; the same whatever the group is called. */
export const capacityAnnotations = {
  cpu: 'capacity.cluster-autoscaler.kubernetes.io/cpu',
  memory: 'capacity.cluster-autoscaler.kubernetes.io/memory',
  ephemeralDisk: 'capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk',
  maxPods: 'capacity.cluster-autoscaler.kubernetes.io/maxPods',
  gpuCount: 'capacity.cluster-autoscaler.kubernetes.io/gpu-count',
  gpuType: 'capacity.cluster-autoscaler.kubernetes.io/gpu-type',
  labels: 'capacity.cluster-autoscaler.kubernetes.io/labels',
  taints: 'capacity.cluster-autoscaler.kubernetes.io/taints',
  csiDriver: 'capacity.cluster-autoscaler.kubernetes.io/csi-driver',
  draDriver: 'capacity.cluster-autoscaler.kubernetes.io/dra-driver',
} as const

/** Names that follow the API group of Cluster API. */
export interface ClusterApiNames {
  readonly group: string
  /** Label of a MachineDeployment, empty, whose Machines may become nodes; of a Machine that is bound to a NodeClaim. */
  readonly member: string
  /** Annotation of a NodeClaim: its Machine as `namespace/name`; of a Node the name alone. */
  readonly machine: string
  /** Key of the taint of a Node that Cluster API has not seen. */
  readonly uninitialized: string
  /** Annotation of a Machine: goes first when its MachineSet shrinks. */
  readonly deleteMachine: string
  /** Label of a Machine and a MachineSet: name of the MachineDeployment. */
  readonly deploymentName: string
  /** Label of a Machine: name of its MachineSet. */
  readonly setName: string
  /** Label of a Machine: name of its Cluster. */
  readonly clusterName: string
  /** Annotation of any object: its controllers leave it alone. */
  readonly paused: string
  /** Label of objects that a topology manages. */
  readonly topologyOwned: string
  readonly minSize: string
  readonly maxSize: string
  /** Annotation of a MachineDeployment: price of a Machine for one hour. */
  readonly price: string
}

/** @param group API group, `cluster.x-k8s.io` as a rule; subdomains of it keep their first parts. */
export function namesOf(group: string): ClusterApiNames {
  return {
    group,
    member: `node.${group}/karpenter-member`,
    machine: `${group}/machine`,
    uninitialized: `node.${group}/uninitialized`,
    deleteMachine: `${group}/delete-machine`,
    deploymentName: `${group}/deployment-name`,
    setName: `${group}/set-name`,
    clusterName: `${group}/cluster-name`,
    paused: `${group}/paused`,
    topologyOwned: `topology.${group}/owned`,
    minSize: `${group}/cluster-api-autoscaler-node-group-min-size`,
    maxSize: `${group}/cluster-api-autoscaler-node-group-max-size`,
    price: `${group}/machine-current-price`,
  }
}
