/** Objects of Cluster API as its controllers see them, the infrastructure's included (cluster-api.md 6, 18). */
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

/** Which Machine of a MachineSet goes first among those that are alike otherwise. */
export type DeletionPolicy = 'Random' | 'Newest' | 'Oldest'

type Amount = number | string

interface RollingUpdate {
  readonly maxSurge?: Amount
  readonly maxUnavailable?: Amount
}

/** A MachineDeployment with what only its controller reads. */
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

/** A MachineSet with what only its controller reads. */
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

/** A Machine with what only its controller reads. */
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
      /** When the drain was over. */
      readonly waitForNodeVolumeDetachStartTime?: string
    }
  }
}

/** What the machines of the simulated infrastructure are like. */
export interface MachineShape {
  /** What they have; that of the annotations of their MachineDeployment when absent. */
  readonly capacity?: ResourceList
  /** `amd64` when absent. */
  readonly architecture?: string
  /** `linux` when absent. */
  readonly operatingSystem?: string
  /** Labels of their kubelets; those of the labels annotation of their MachineDeployment when absent. */
  readonly labels?: Readonly<Record<string, string>>
  /** Taints of their kubelets beside that of nodes which are not registered yet. */
  readonly taints?: readonly Taint[]
  /** Whether their kubelets come with `karpenter.sh/unregistered:NoExecute`; they do when absent. */
  readonly registersUnregistered?: boolean
  /** Whether kubeadm joins them, with `node.cluster.x-k8s.io/uninitialized:NoSchedule`; it does when absent. */
  readonly joinsUninitialized?: boolean
}

/** Template of the simulated infrastructure's machines. */
export interface InfrastructureTemplate extends KubeObject {
  readonly spec?: { readonly template?: { readonly spec?: MachineShape } }
  readonly status?: {
    readonly capacity?: ResourceList
    readonly nodeInfo?: { readonly architecture?: string; readonly operatingSystem?: string }
  }
}

/** The kinds of a simulated hub, in the version that it serves. */
export interface SimulatedKinds {
  readonly version: ServedVersion
  readonly deployment: ResourceType<FullDeployment>
  readonly set: ResourceType<FullSet>
  readonly machine: ResourceType<FullMachine>
  readonly cluster: ResourceType<Cluster>
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
    cluster: namespaced(group, version, 'Cluster', 'clusters'),
    template: namespaced(
      `infrastructure.${group}`,
      version,
      'SimulatedMachineTemplate',
      'simulatedmachinetemplates',
    ),
  }
}

/** Finalizers of Cluster API's own. */
export const finalizers = {
  deployment: 'cluster.x-k8s.io/machinedeployment',
  set: 'cluster.x-k8s.io/machineset',
  machine: 'machine.cluster.x-k8s.io',
} as const

/** UID of the object that controls this one. */
export function controllerUid({ metadata }: KubeObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid
}

export const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined

/** What refers to the object that controls another one. */
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
