import type { Requirement } from '../instance-types.ts'
import type { Condition, KubeObject, LabelSelector, ResourceList, Taint } from '../objects.ts'
import type { ResourceType } from '../resources.ts'

export interface NodeClassReference {
  readonly group: string
  readonly kind: string
  readonly name: string
}

/** What NodePool templates and NodeClaims share. */
export interface NodeClaimTemplateSpec {
  readonly nodeClassRef: NodeClassReference
  readonly requirements: readonly Requirement[]
  readonly taints?: readonly Taint[]
  readonly startupTaints?: readonly Taint[]
  /** Go duration or `Never`. */
  readonly expireAfter?: string
  readonly terminationGracePeriod?: string
}

/** Why a node may be disrupted, as budgets name it. */
export const disruptionReasons = ['Underutilized', 'Empty', 'Drifted'] as const
export type DisruptionReason = (typeof disruptionReasons)[number]

/** How many nodes of a pool may be disrupted at once, and when the limit applies. */
export interface Budget {
  readonly nodes: string
  readonly schedule?: string
  readonly duration?: string
  readonly reasons?: readonly DisruptionReason[]
}

export interface NodePool extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly metadata?: {
        readonly labels?: Readonly<Record<string, string>>
        readonly annotations?: Readonly<Record<string, string>>
      }
      readonly spec: NodeClaimTemplateSpec
    }
    readonly disruption?: {
      readonly consolidateAfter?: string
      readonly consolidationPolicy?: 'WhenEmpty' | 'WhenEmptyOrUnderutilized' | 'Balanced'
      readonly budgets?: readonly Budget[]
    }
    readonly limits?: ResourceList
    readonly weight?: number
    readonly replicas?: number
  }
  readonly status?: {
    readonly nodes?: number
    readonly resources?: ResourceList
    readonly nodeClassObservedGeneration?: number
    readonly conditions?: readonly Condition[]
  }
}

/** A request for one node. */
export interface NodeClaim extends KubeObject {
  readonly spec: NodeClaimTemplateSpec & { readonly resources?: { readonly requests?: ResourceList } }
  readonly status?: {
    readonly providerID?: string
    readonly nodeName?: string
    readonly imageID?: string
    readonly capacity?: ResourceList
    readonly allocatable?: ResourceList
    readonly lastPodEventTime?: string
    readonly conditions?: readonly Condition[]
  }
}

/** Corrects prices and capacity of the provider's instance types. */
export interface NodeOverlay extends KubeObject {
  readonly spec: {
    /** Which offerings of which NodePools it applies to; empty: all. */
    readonly requirements: readonly Omit<Requirement, 'minValues'>[]
    /** Replaces the price per hour. */
    readonly price?: string
    /** A signed difference or a signed percentage. */
    readonly priceAdjustment?: string
    /** Additional resources of the instances. */
    readonly capacity?: ResourceList
    /** The overlay with the highest weight wins; default 0. */
    readonly weight?: number
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** Keeps spare nodes for a number of pods (buffers-and-dra.md 2). */
export interface CapacityBuffer extends KubeObject {
  readonly spec: {
    /** Copied to the status only; every strategy is served in the same way. */
    readonly provisioningStrategy?: string
    /** A PodTemplate in the same namespace. */
    readonly podTemplateRef?: { readonly name: string }
    /** A workload in the same namespace; the spare capacity is for its pods. An empty group means `apps`. */
    readonly scalableRef?: { readonly apiGroup?: string; readonly kind: string; readonly name: string }
    readonly replicas?: number
    /** Percentage of the workload's replicas. */
    readonly percentage?: number
    /** Limit on the total requests of all placeholder pods. */
    readonly limits?: ResourceList
  }
  readonly status?: {
    readonly podTemplateRef?: { readonly name: string }
    readonly podTemplateGeneration?: number
    readonly replicas?: number
    readonly provisioningStrategy?: string
    readonly conditions?: readonly Condition[]
  }
}

/** A ceiling over all nodes that a selector matches (quotas.md 1). */
export interface CapacityQuota extends KubeObject {
  readonly spec: {
    /** Selects nodes; absent or empty = all nodes. */
    readonly selector?: LabelSelector
    /** At most 20 whole quantities; `nodes` limits the number of nodes. */
    readonly limits: { readonly resources: ResourceList }
  }
  readonly status?: {
    readonly used?: { readonly resources?: ResourceList }
    readonly observedGeneration?: number
    readonly conditions?: readonly Condition[]
  }
}

/** Requests capacity for sets of pods before they are created (gangs.md 1). */
export interface ProvisioningRequest extends KubeObject {
  readonly spec: {
    readonly podSets: readonly {
      /** A PodTemplate in the same namespace. */
      readonly podTemplateRef: { readonly name: string }
      readonly count: number
    }[]
    /** Which controller serves it, and how; other controllers ignore it. */
    readonly provisioningClassName: string
    readonly parameters?: Readonly<Record<string, string>>
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    /** Details about the nodes for the pods, such as node selectors. */
    readonly provisioningClassDetails?: Readonly<Record<string, string>>
  }
}

/** What the core needs from a provider's node class. */
export interface NodeClass extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] }
}

export const karpenterKinds = {
  nodePool: {
    group: 'karpenter.sh',
    version: 'v1',
    kind: 'NodePool',
    plural: 'nodepools',
    namespaced: false,
  } as ResourceType<NodePool>,
  nodeClaim: {
    group: 'karpenter.sh',
    version: 'v1',
    kind: 'NodeClaim',
    plural: 'nodeclaims',
    namespaced: false,
  } as ResourceType<NodeClaim>,
  nodeOverlay: {
    group: 'karpenter.sh',
    version: 'v1alpha1',
    kind: 'NodeOverlay',
    plural: 'nodeoverlays',
    namespaced: false,
  } as ResourceType<NodeOverlay>,
} as const

/** The kinds that Cluster Autoscaler and Karpenter share. */
export const autoscalingKinds = {
  capacityBuffer: {
    group: 'autoscaling.x-k8s.io',
    version: 'v1beta1',
    kind: 'CapacityBuffer',
    plural: 'capacitybuffers',
    namespaced: true,
  } as ResourceType<CapacityBuffer>,
  capacityQuota: {
    group: 'autoscaling.x-k8s.io',
    version: 'v1beta1',
    kind: 'CapacityQuota',
    plural: 'capacityquotas',
    namespaced: false,
  } as ResourceType<CapacityQuota>,
  provisioningRequest: {
    group: 'autoscaling.x-k8s.io',
    version: 'v1',
    kind: 'ProvisioningRequest',
    plural: 'provisioningrequests',
    namespaced: true,
  } as ResourceType<ProvisioningRequest>,
} as const
