import type { Requirement } from '../instance-types.ts'
import type { Condition, KubeObject, ResourceList, Taint } from '../objects.ts'
import type { ResourceType } from '../resources.ts'

/** Names a node class: which provider object configures the instances. */
export interface NodeClassReference {
  readonly group: string
  readonly kind: string
  readonly name: string
}

/** What a NodePool and its claims say alike about a node. */
export interface NodeClaimTemplateSpec {
  readonly nodeClassRef: NodeClassReference
  readonly requirements: readonly Requirement[]
  readonly taints?: readonly Taint[]
  readonly startupTaints?: readonly Taint[]
  /** Go duration or `Never`. */
  readonly expireAfter?: string
  readonly terminationGracePeriod?: string
}

/** Why a node may be disrupted. */
export type DisruptionReason = 'Underutilized' | 'Empty' | 'Drifted'

/** How many nodes of a pool may be disrupted at once, and when that holds. */
export interface Budget {
  readonly nodes: string
  readonly schedule?: string
  readonly duration?: string
  readonly reasons?: readonly DisruptionReason[]
}

/** A pool: what its nodes look like, how many there may be, how they are replaced. */
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

/** The intent to have one node. */
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

/** Prices and resources of instance types as the user knows them better than the provider. */
export interface NodeOverlay extends KubeObject {
  readonly spec: {
    /** Which offerings of which NodePools it is for; all when empty. */
    readonly requirements: readonly Omit<Requirement, 'minValues'>[]
    /** Price per hour in place of the provider's. */
    readonly price?: string
    /** Signed difference from the provider's price, or a signed percentage of it. */
    readonly priceAdjustment?: string
    /** Resources that the instances have beside those the provider knows of. */
    readonly capacity?: ResourceList
    /** Overlays of higher weight win; 0 when absent. */
    readonly weight?: number
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** A promise of room: the nodes for so many more pods of a kind are kept ready (buffers-and-dra.md 2). */
export interface CapacityBuffer extends KubeObject {
  readonly spec: {
    /** Stored and copied to the status; every strategy is served alike. */
    readonly provisioningStrategy?: string
    /** A PodTemplate of the same namespace. */
    readonly podTemplateRef?: { readonly name: string }
    /** A workload of the same namespace whose pods the room is for; its group is `apps` when empty. */
    readonly scalableRef?: { readonly apiGroup?: string; readonly kind: string; readonly name: string }
    readonly replicas?: number
    /** Of the replicas of the workload. */
    readonly percentage?: number
    /** What all replicas together may ask for. */
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

/** A request for room for all pods of some sets at once, before the pods are made (gangs.md 1). */
export interface ProvisioningRequest extends KubeObject {
  readonly spec: {
    readonly podSets: readonly {
      /** A PodTemplate of the same namespace. */
      readonly podTemplateRef: { readonly name: string }
      readonly count: number
    }[]
    /** Which program serves it, and how; others leave it alone. */
    readonly provisioningClassName: string
    readonly parameters?: Readonly<Record<string, string>>
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    /** What pods may be told of the nodes, for instance as node selectors. */
    readonly provisioningClassDetails?: Readonly<Record<string, string>>
  }
}

/** What the core needs of a provider's node class. */
export interface NodeClass extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** The kinds of the Karpenter API. */
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

/** The kinds that Cluster Autoscaler and Karpenter have in common. */
export const autoscalingKinds = {
  capacityBuffer: {
    group: 'autoscaling.x-k8s.io',
    version: 'v1beta1',
    kind: 'CapacityBuffer',
    plural: 'capacitybuffers',
    namespaced: true,
  } as ResourceType<CapacityBuffer>,
  provisioningRequest: {
    group: 'autoscaling.x-k8s.io',
    version: 'v1',
    kind: 'ProvisioningRequest',
    plural: 'provisioningrequests',
    namespaced: true,
  } as ResourceType<ProvisioningRequest>,
} as const
