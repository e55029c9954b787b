/** Names of labels, annotations and groups (cluster-api.md 1, 3, 6). */

/** API group of ClusterAPINodeClass, and domain of the labels that describe instance types. */
export const providerDomain = 'karpenter.cluster.x-k8s.io'

/** The group of Cluster API unless `CAPI_GROUP` is set. */
export const defaultGroup = 'cluster.x-k8s.io'

/** Node labels that MachineDeployments may have in addition to those of Kubernetes. */
export const instanceLabels = {
  size: `${providerDomain}/instance-size`,
  family: `${providerDomain}/instance-family`,
  memory: `${providerDomain}/instance-memory`,
  cpu: `${providerDomain}/instance-cpu`,
  capacityMemory: `capacity.${providerDomain}/memory`,
  capacityCpu: `capacity.${providerDomain}/cpu`,
} as const

/** Tenon's own names on objects of the hub. */
export const ownNames = {
  /** Annotation of a Machine: name of the NodeClaim that it is bound to. */
  nodeClaim: 'tenon.sh/nodeclaim',
  /** Annotation of a Machine: UID of that NodeClaim. */
  nodeClaimUid: 'tenon.sh/nodeclaim-uid',
  /** Annotation of a Machine: UID of the namespace kube-system of the cluster that its NodeClaim is in. */
  workloadCluster: 'tenon.sh/workload-cluster',
  /**
   * Annotation of a MachineDeployment: UIDs of Machines that are being removed and for which `spec.replicas` was
   * lowered already.
   */
  released: 'tenon.sh/released-machines',
  /** Annotation of a MachineDeployment: how many of its replicas Tenon requested. */
  asked: 'tenon.sh/replicas',
} as const

/** Annotations of MachineDeployments about their nodes' capacity; the same for every API group. */
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

/** Names that depend on the API group of Cluster API. */
export interface ClusterApiNames {
  readonly group: string
  /**
   * On a MachineDeployment: label with an empty value if its Machines may become nodes. On a Machine: it is bound to a
   * NodeClaim.
   */
  readonly member: string
  /** On a NodeClaim: annotation with its Machine as `namespace/name`. On a Node: the name alone. */
  readonly machine: string
  /** Taint of a Node that Cluster API has not processed yet. */
  readonly uninitialized: string
  /** Annotation of a Machine: it is deleted first when its MachineSet shrinks. */
  readonly deleteMachine: string
  /** Label of a Machine and a MachineSet: name of the MachineDeployment. */
  readonly deploymentName: string
  /** Label of a Machine: name of its MachineSet. */
  readonly setName: string
  /** Label of a Machine, annotation of a Node: name of its Cluster. */
  readonly clusterName: string
  /** Annotation of a Node: namespace of its Cluster. */
  readonly clusterNamespace: string
  /** Annotation of any object: its controllers ignore it. */
  readonly paused: string
  /** Label of objects that a topology manages. */
  readonly topologyOwned: string
  readonly minSize: string
  readonly maxSize: string
  /** Annotation of a MachineDeployment: price of a Machine per hour. */
  readonly price: string
}

/**
 * @param group API group, usually `cluster.x-k8s.io`; names derived from another group keep their first parts.
 */
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
    clusterNamespace: `${group}/cluster-namespace`,
    paused: `${group}/paused`,
    topologyOwned: `topology.${group}/owned`,
    minSize: `${group}/cluster-api-autoscaler-node-group-min-size`,
    maxSize: `${group}/cluster-api-autoscaler-node-group-max-size`,
    price: `${group}/machine-current-price`,
  }
}

/** Names of Cluster API that keep their domain, whatever the API group. */
export const fixedNames = {
  /** Annotation of any object: its controllers ignore it. */
  paused: `${defaultGroup}/paused`,
  /** Label of a Machine and a MachineSet: name of the MachineDeployment. */
  deploymentName: `${defaultGroup}/deployment-name`,
  /** Annotation of a MachineSet: its place in the rollouts of its MachineDeployment. */
  revision: 'machinedeployment.clusters.x-k8s.io/revision',
  /** Annotation of a MachinePool: who sets its replicas, unless it is `false`. */
  replicasManagedBy: `${defaultGroup}/replicas-managed-by`,
} as const
