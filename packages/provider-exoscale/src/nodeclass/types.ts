import type { Condition, KubeObject, ResourceType } from '@tenon/api'

/** A group or network, by id or by name. */
export interface SelectorTerm {
  readonly id?: string
  readonly name?: string
}

/** Resources that are reserved; quantities. */
export interface Reservation {
  readonly cpu?: string
  readonly memory?: string
  readonly ephemeralStorage?: string
}

export interface KubeletSpec {
  readonly clusterDNS?: readonly string[]
  readonly imageGCHighThresholdPercent?: number
  readonly imageGCLowThresholdPercent?: number
  readonly imageMinimumGCAge?: string
  readonly kubeReserved?: Reservation
  readonly systemReserved?: Reservation
  readonly featureGates?: Readonly<Record<string, boolean>>
}

export interface ExoscaleNodeClassSpec {
  readonly templateID?: string
  readonly imageTemplateSelector?: { readonly version?: string; readonly variant?: string }
  /** GiB. */
  readonly diskSize?: number
  readonly securityGroupSelectorTerms?: readonly SelectorTerm[]
  readonly antiAffinityGroupSelectorTerms?: readonly SelectorTerm[]
  readonly privateNetworkSelectorTerms?: readonly SelectorTerm[]
  /** Older form: only ids; they come before the selector terms. */
  readonly securityGroups?: readonly string[]
  readonly antiAffinityGroups?: readonly string[]
  readonly privateNetworks?: readonly string[]
  readonly kubelet?: KubeletSpec
  /** Fields of earlier releases with any value; read by `formerSettings`. */
  readonly imageGCHighThresholdPercent?: unknown
  readonly imageGCLowThresholdPercent?: unknown
  readonly imageMinimumGCAge?: unknown
  readonly kubeReserved?: unknown
  readonly systemReserved?: unknown
  readonly nodeLabels?: unknown
  readonly nodeTaints?: unknown
}

/** Configures the instances of a NodePool on Exoscale. */
export interface ExoscaleNodeClass extends KubeObject {
  readonly spec: ExoscaleNodeClassSpec
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly securityGroups?: readonly string[]
    readonly antiAffinityGroups?: readonly string[]
    readonly privateNetworks?: readonly string[]
  }
}

export const exoscaleNodeClassKind: ResourceType<ExoscaleNodeClass> = {
  group: 'karpenter.exoscale.com',
  version: 'v1',
  kind: 'ExoscaleNodeClass',
  plural: 'exoscalenodeclasses',
  namespaced: false,
}
