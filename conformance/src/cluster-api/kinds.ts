/** Cluster API's kinds, and those of the tests' infrastructure provider. */
import type { KubeObject, ResourceList, ResourceType, Taint } from '@tenon/api'

/** A reference to an object in the same namespace; v1beta2 contains the group, v1beta1 group and version. */
export interface Reference {
  readonly apiGroup?: string
  readonly apiVersion?: string
  readonly kind: string
  readonly name: string
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

interface MachineSpec {
  readonly clusterName: string
  readonly bootstrap: { readonly dataSecretName?: string; readonly configRef?: Reference }
  readonly infrastructureRef: Reference
  readonly providerID?: string
  readonly failureDomain?: string
  readonly version?: string
}

/** The fields of a Machine that tests read. */
export interface Machine extends KubeObject {
  readonly spec: MachineSpec
  readonly status?: {
    readonly phase?: string
    readonly nodeRef?: { readonly name: string }
    readonly initialization?: {
      readonly infrastructureProvisioned?: boolean
      readonly bootstrapDataSecretCreated?: boolean
    }
    readonly conditions?: readonly Condition[]
    readonly addresses?: readonly { readonly type: string; readonly address: string }[]
  }
}

interface Scalable extends KubeObject {
  readonly spec: {
    readonly clusterName: string
    readonly replicas?: number
    readonly selector: { readonly matchLabels?: Readonly<Record<string, string>> }
    readonly template: {
      readonly metadata?: {
        readonly labels?: Readonly<Record<string, string>>
        readonly annotations?: Readonly<Record<string, string>>
      }
      readonly spec: MachineSpec
    }
  }
  readonly status?: {
    readonly replicas?: number
    readonly readyReplicas?: number
    readonly availableReplicas?: number
    readonly phase?: string
    readonly conditions?: readonly Condition[]
  }
}

export type MachineDeployment = Scalable
export type MachineSet = Scalable

export interface Cluster extends KubeObject {
  readonly spec: {
    readonly controlPlaneEndpoint?: { readonly host: string; readonly port: number }
    readonly infrastructureRef?: Reference
    readonly controlPlaneRef?: Reference
    readonly topology?: { readonly version: string; readonly [field: string]: unknown }
  }
  readonly status?: {
    readonly initialization?: {
      readonly infrastructureProvisioned?: boolean
      readonly controlPlaneInitialized?: boolean
    }
    readonly conditions?: readonly Condition[]
  }
}

export interface KubeadmControlPlane extends KubeObject {
  readonly spec: { readonly replicas?: number; readonly version?: string }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** A machine of the tests' infrastructure, as in its template. */
interface TestMachineSpec {
  readonly providerID?: string
  /** Reported by the node. */
  readonly capacity?: ResourceList
  /** Labels and taints with which the kubelet registers. */
  readonly nodeLabels?: Readonly<Record<string, string>>
  readonly nodeTaints?: readonly Taint[]
}

export interface TestMachine extends KubeObject {
  readonly spec: TestMachineSpec
  readonly status?: { readonly initialization?: { readonly provisioned?: boolean } }
}

export interface TestControlPlane extends KubeObject {
  readonly spec: { readonly version?: string }
  readonly status?: { readonly version?: string }
}

export interface TestMachineTemplate extends KubeObject {
  readonly spec: { readonly template: { readonly spec: TestMachineSpec } }
  readonly status?: {
    readonly capacity?: ResourceList
    readonly nodeInfo?: { readonly architecture: string; readonly operatingSystem: string }
  }
}

/** The API group of the infrastructure provider; every provider has its own. */
export const infrastructureGroup = 'infrastructure.tenon.test'
const group = 'cluster.x-k8s.io'

const served = <T extends KubeObject>(kindGroup: string, version: string, kind: string): ResourceType<T> => ({
  group: kindGroup,
  version,
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: true,
})

const core = <T extends KubeObject>(kind: string, version = 'v1beta2') => served<T>(group, version, kind)
const own = <T extends KubeObject>(kind: string) => served<T>(infrastructureGroup, 'v1alpha1', kind)

/** Cluster API's kinds in v1beta2; `old` has those in v1beta1. */
export const capiKinds = {
  cluster: core<Cluster>('Cluster'),
  machineDeployment: core<MachineDeployment>('MachineDeployment'),
  machineSet: core<MachineSet>('MachineSet'),
  machine: core<Machine>('Machine'),
  machineHealthCheck: core('MachineHealthCheck'),
  clusterClass: { ...core('ClusterClass'), plural: 'clusterclasses' },
  old: {
    machineDeployment: core<MachineDeployment>('MachineDeployment', 'v1beta1'),
    machineSet: core<MachineSet>('MachineSet', 'v1beta1'),
    machine: core<Machine>('Machine', 'v1beta1'),
  },
} as const

/** Kinds of the kubeadm bootstrap and control plane providers. */
export const kubeadmKinds = {
  config: served(`bootstrap.${group}`, 'v1beta2', 'KubeadmConfig'),
  configTemplate: served(`bootstrap.${group}`, 'v1beta2', 'KubeadmConfigTemplate'),
  controlPlane: served<KubeadmControlPlane>(`controlplane.${group}`, 'v1beta2', 'KubeadmControlPlane'),
  controlPlaneTemplate: served(`controlplane.${group}`, 'v1beta2', 'KubeadmControlPlaneTemplate'),
} as const

export const testKinds = {
  cluster: own('TestCluster'),
  clusterTemplate: own('TestClusterTemplate'),
  controlPlane: own<TestControlPlane>('TestControlPlane'),
  controlPlaneTemplate: own('TestControlPlaneTemplate'),
  bootstrap: own('TestBootstrap'),
  bootstrapTemplate: own('TestBootstrapTemplate'),
  machine: own<TestMachine>('TestMachine'),
  machineTemplate: own<TestMachineTemplate>('TestMachineTemplate'),
} as const

/** A reference in v1beta2. */
export const referenceTo = ({ group: apiGroup, kind }: ResourceType, name: string): Reference => ({
  apiGroup,
  kind,
  name,
})

/** Whether a Machine, or its TestMachine, belongs to a KubeadmControlPlane. */
export const isControlPlane = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.['cluster.x-k8s.io/control-plane'] !== undefined
