/**
 * Objects of Cluster API, with the fields that v1beta1 and v1beta2 have in common (cluster-api.md 6, 18). Controllers
 * and users write them, so any field may be absent.
 */
import type { Condition, KubeObject, LabelSelector, ResourceType, Taint } from '@tenon/api'

/** Refers to an infrastructure or bootstrap template: `apiVersion` in v1beta1, `apiGroup` in v1beta2. */
export interface TemplateRef {
  readonly apiVersion?: string
  readonly apiGroup?: string
  readonly kind?: string
  readonly name?: string
  readonly namespace?: string
}

/** The template of a MachineDeployment's Machines. */
export interface MachineTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: {
    readonly clusterName?: string
    readonly failureDomain?: string
    readonly version?: string
    readonly infrastructureRef?: TemplateRef
    readonly taints?: readonly (Taint & { readonly propagation?: string })[]
  }
}

/** A number of equal machines. */
export interface MachineDeployment extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string
    readonly replicas?: number
    readonly paused?: boolean
    readonly selector?: LabelSelector
    readonly template?: MachineTemplate
    /** v1beta1. */
    readonly strategy?: { readonly type?: string }
    /** v1beta2. */
    readonly rollout?: { readonly strategy?: { readonly type?: string } }
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly replicas?: number
    readonly readyReplicas?: number
    /** v1beta1. */
    readonly updatedReplicas?: number
    /** v1beta2. */
    readonly upToDateReplicas?: number
    readonly phase?: string
    readonly conditions?: readonly Condition[]
  }
}

/** Machines of one version of a MachineDeployment's template. */
export interface MachineSet extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string
    readonly replicas?: number
    readonly selector?: LabelSelector
    readonly template?: MachineTemplate
  }
  readonly status?: { readonly observedGeneration?: number; readonly replicas?: number }
}

/** Machines that the infrastructure creates as one group; not every infrastructure has Machines for them. */
export interface MachinePool extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string
    readonly replicas?: number
    readonly template?: MachineTemplate
    /** Of all its instances. */
    readonly providerIDList?: readonly string[]
  }
  readonly status?: { readonly replicas?: number }
}

/** One machine. */
export interface Machine extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string
    /** Equal to that of its Node; absent until the infrastructure sets it. */
    readonly providerID?: string
    readonly version?: string
    readonly failureDomain?: string
  }
  readonly status?: {
    readonly nodeRef?: { readonly name?: string; readonly kind?: string }
    /** Such as `Provisioning`, `Running`, `Deleting`, `Failed`. */
    readonly phase?: string
    /** v1beta1, for a Machine that will never work. */
    readonly failureReason?: string
    readonly failureMessage?: string
    /** v1beta2: the same of former versions. */
    readonly deprecated?: {
      readonly v1beta1?: { readonly failureReason?: string; readonly failureMessage?: string }
    }
    readonly conditions?: readonly Condition[]
    /** v1beta1: the conditions in their v1beta2 form. */
    readonly v1beta2?: { readonly conditions?: readonly Condition[] }
  }
}

/** Supported versions of Cluster API, preferred first. */
export const servedVersions = ['v1beta2', 'v1beta1'] as const

/** One of {@link servedVersions}. */
export type ServedVersion = (typeof servedVersions)[number]

/** A workload cluster in its hub. */
export interface Cluster extends KubeObject {
  readonly spec?: { readonly paused?: boolean }
}

/** The kinds of a hub, in its served version. */
export interface HubKinds {
  readonly machineDeployment: ResourceType<MachineDeployment>
  readonly machineSet: ResourceType<MachineSet>
  readonly machinePool: ResourceType<MachinePool>
  readonly machine: ResourceType<Machine>
  readonly cluster: ResourceType<Cluster>
}

/** @param group API group, usually `cluster.x-k8s.io`. */
export function kindsOf(group: string, version: ServedVersion): HubKinds {
  const namespaced = true
  return {
    machineDeployment: {
      group,
      version,
      kind: 'MachineDeployment',
      plural: 'machinedeployments',
      namespaced,
    },
    machineSet: { group, version, kind: 'MachineSet', plural: 'machinesets', namespaced },
    machinePool: { group, version, kind: 'MachinePool', plural: 'machinepools', namespaced },
    machine: { group, version, kind: 'Machine', plural: 'machines', namespaced },
    cluster: { group, version, kind: 'Cluster', plural: 'clusters', namespaced },
  }
}
