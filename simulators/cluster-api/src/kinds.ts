/**
 * Objects of Cluster API as its controllers see them, with those of the infrastructure (cluster-api.md 6, 18).
 */
import {
  apiVersionOf,
  type Condition,
  type KubeObject,
  type LabelSelector,
  type OwnerReference,
  type ResourceList,
  type ResourceType,
  type Taint,
} from '@tenon/api'
import type {
  Cluster,
  Machine,
  MachineDeployment,
  MachineSet,
  MachineTemplate,
  ServedVersion,
} from '@tenon/provider-cluster-api'

/** Which of otherwise equal Machines a MachineSet deletes first. */
export type DeletionPolicy = 'Random' | 'Newest' | 'Oldest'

type Amount = number | string

interface RollingUpdate {
  readonly maxSurge?: Amount
  readonly maxUnavailable?: Amount
}

/** A Cluster with the sizes that its topology sets. */
interface FullCluster extends Cluster {
  readonly spec?: NonNullable<Cluster['spec']> & {
    readonly topology?: {
      readonly workers?: {
        readonly machineDeployments?: readonly { readonly name: string; readonly replicas?: number }[]
      }
    }
  }
}

/** A MachineDeployment with the fields that only its controller reads. */
export interface FullDeployment extends MachineDeployment {
  readonly spec?: NonNullable<MachineDeployment['spec']> & {
    /** v1beta1. */
    readonly strategy?: {
      readonly type?: string
      readonly rollingUpdate?: RollingUpdate & { readonly deletePolicy?: DeletionPolicy }
    }
    /** v1beta2. */
    readonly rollout?: {
      readonly strategy?: { readonly type?: string; readonly rollingUpdate?: RollingUpdate }
    }
    /** v1beta2. */
    readonly deletion?: { readonly order?: DeletionPolicy }
  }
}

/** A MachineSet with the fields that only its controller reads. */
export interface FullSet extends MachineSet {
  readonly spec?: NonNullable<MachineSet['spec']> & {
    readonly selector?: LabelSelector
    /** v1beta1. */
    readonly deletePolicy?: DeletionPolicy
    /** v1beta2. */
    readonly deletion?: { readonly order?: DeletionPolicy }
  }
  readonly status?: NonNullable<MachineSet['status']> & {
    readonly availableReplicas?: number
    readonly observedGeneration?: number
    readonly conditions?: readonly Condition[]
  }
}

/** A Machine with the fields that only its controller reads. */
export interface FullMachine extends Machine {
  readonly spec?: NonNullable<Machine['spec']> & {
    readonly infrastructureRef?: NonNullable<MachineTemplate['spec']>['infrastructureRef']
    readonly taints?: readonly Taint[]
    /** v1beta1: a duration such as `5m`. */
    readonly nodeDrainTimeout?: string
    /** v1beta2. */
    readonly deletion?: { readonly nodeDrainTimeoutSeconds?: number }
  }
  readonly status?: NonNullable<Machine['status']> & {
    readonly deletion?: {
      readonly nodeDrainStartTime?: string
      /** When the drain had ended. */
      readonly waitForNodeVolumeDetachStartTime?: string
    }
  }
}

/** A number of equal machines that the infrastructure manages as one. */
export interface MachinePool extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string
    readonly replicas?: number
    readonly template?: MachineTemplate
    /** Written by the controller. */
    readonly providerIDList?: readonly string[]
  }
  readonly status?: {
    readonly replicas?: number
    readonly readyReplicas?: number
    readonly phase?: string
    readonly nodeRefs?: readonly { readonly name?: string }[]
    readonly conditions?: readonly Condition[]
  }
}

/** Replaces Machines whose Nodes are not healthy. */
export interface MachineHealthCheck extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string
    readonly selector?: LabelSelector
    /** v1beta1: durations such as `5m`. */
    readonly nodeStartupTimeout?: string
    readonly unhealthyConditions?: readonly {
      readonly type: string
      readonly status: string
      readonly timeout: string
    }[]
    /** v1beta2. */
    readonly checks?: {
      readonly nodeStartupTimeoutSeconds?: number
      readonly unhealthyNodeConditions?: readonly {
        readonly type: string
        readonly status: string
        readonly timeoutSeconds: number
      }[]
    }
  }
}

/** The properties of the simulated machines. */
export interface MachineShape {
  /** Default: from annotations of their MachineDeployment. */
  readonly capacity?: ResourceList
  /** Default: `amd64`. */
  readonly architecture?: string
  /** Default: `linux`. */
  readonly operatingSystem?: string
  /** Labels of their kubelets; default: from the labels annotation of their MachineDeployment. */
  readonly labels?: Readonly<Record<string, string>>
  /** Taints of their kubelets, in addition to the unregistered taint. */
  readonly taints?: readonly Taint[]
  /** Whether their kubelets register with `karpenter.sh/unregistered:NoExecute`; default: true. */
  readonly registersUnregistered?: boolean
  /** Whether kubeadm joins them, with `node.cluster.x-k8s.io/uninitialized:NoSchedule`; default: true. */
  readonly joinsUninitialized?: boolean
  /** Whether a MachinePool of them has a Machine for each; default: false. */
  readonly poolHasMachines?: boolean
  /** Whether a MachinePool that shrinks ignores the annotation `delete-machine`; default: false. */
  readonly poolIgnoresMarks?: boolean
}

/** Template of the simulated infrastructure's machines. */
export interface InfrastructureTemplate extends KubeObject {
  readonly spec?: { readonly template?: { readonly spec?: MachineShape } }
  readonly status?: {
    readonly capacity?: ResourceList
    readonly nodeInfo?: { readonly architecture?: string; readonly operatingSystem?: string }
  }
}

/** The kinds of a simulated hub, in its served version. */
export interface SimulatedKinds {
  readonly version: ServedVersion
  readonly deployment: ResourceType<FullDeployment>
  readonly set: ResourceType<FullSet>
  readonly machine: ResourceType<FullMachine>
  readonly pool: ResourceType<MachinePool>
  /** Instances of MachinePools without Machines; of the infrastructure, and known to nobody else. */
  readonly poolInstance: ResourceType<FullMachine>
  readonly healthCheck: ResourceType<MachineHealthCheck>
  readonly cluster: ResourceType<FullCluster>
  readonly template: ResourceType<InfrastructureTemplate>
}

const namespaced = <T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
): ResourceType<T> => ({ group, version, kind, plural, namespaced: true })

/** @param group API group of Cluster API. */
export function simulatedKinds(group: string, version: ServedVersion): SimulatedKinds {
  return {
    version,
    deployment: namespaced(group, version, 'MachineDeployment', 'machinedeployments'),
    set: namespaced(group, version, 'MachineSet', 'machinesets'),
    machine: namespaced(group, version, 'Machine', 'machines'),
    pool: namespaced(group, version, 'MachinePool', 'machinepools'),
    poolInstance: namespaced(
      `infrastructure.${group}`,
      version,
      'SimulatedPoolInstance',
      'simulatedpoolinstances',
    ),
    healthCheck: namespaced(group, version, 'MachineHealthCheck', 'machinehealthchecks'),
    cluster: namespaced(group, version, 'Cluster', 'clusters'),
    template: namespaced(
      `infrastructure.${group}`,
      version,
      'SimulatedMachineTemplate',
      'simulatedmachinetemplates',
    ),
  }
}

/** Finalizers of Cluster API. */
export const finalizers = {
  deployment: 'cluster.x-k8s.io/machinedeployment',
  set: 'cluster.x-k8s.io/machineset',
  machine: 'machine.cluster.x-k8s.io',
  pool: 'machinepool.cluster.x-k8s.io',
} as const

/** UID of the object's controller. */
export function controllerUid({ metadata }: KubeObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid
}

export const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined

/** An owner reference to the controller of another object. */
export function ownedBy(type: ResourceType, { metadata }: KubeObject): OwnerReference {
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}
