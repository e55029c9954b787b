/** A cluster at one moment, with everything that decisions read (ask.md 4). */
import type { InstanceType, KubeObject, NodeClass, ResourceType } from '@tenon/api'
import type { JournalEntry, NodeDecision, OperatorMemory, Settings } from '@tenon/operator'
import type { CloudProvider, NodeDefaults } from '@tenon/provider'

/** Version of the format; newer ones are rejected. Version 1 had one line per pod, without shared parts. */
export const snapshotVersion = 2

/** What a snapshot knows about the cloud besides the catalogue. */
export interface SnapshotCloud
  extends Pick<
    CloudProvider,
    | 'wellKnownLabels'
    | 'restrictedLabels'
    | 'restrictedDomains'
    | 'labelAliases'
    | 'unsupportedProvisioners'
    | 'unsupportedTopologyKeys'
    | 'reservationLabel'
    | 'defaultTerminationGracePeriodMs'
    | 'repairPolicies'
  > {
  readonly name: string
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Such as `EUR`; absent if unknown. */
  readonly priceUnit?: string
}

export interface SnapshotCatalogue {
  /** Names of the NodePools that share this list. */
  readonly nodePools: readonly string[]
  /** Undefined if the provider could not list them. */
  readonly instanceTypes: readonly InstanceType[] | undefined
  readonly problem?: string
  readonly defaults?: NodeDefaults
  /** Of kubelets of new nodes; absent if unknown. */
  readonly kubeletVersion?: string
}

export type SnapshotOrigin =
  /** A controller, the leader or a standby. */
  | { readonly kind: 'controller'; readonly identity: string; readonly isLeading: boolean }
  /** The objects of a cluster, read without its controller. */
  | { readonly kind: 'objects'; readonly server: string; readonly catalogue: string }

export interface Snapshot {
  /** Unix milliseconds; decisions on the snapshot use it as the current time. */
  readonly takenAtMs: number
  /** Name and version of the program that wrote it. */
  readonly program: string
  readonly origin: SnapshotOrigin
  readonly cloud: SnapshotCloud
  readonly settings: Settings
  /** Trimmed to what decisions read; without Secrets and ConfigMaps. */
  readonly objects: readonly KubeObject[]
  readonly catalogues: readonly SnapshotCatalogue[]
  readonly memory: OperatorMemory
  /** Why each node still exists, according to the controller; empty without one. */
  readonly nodeDecisions: readonly NodeDecision[]
  /** Recent actions of the controller, oldest first. */
  readonly journal: readonly JournalEntry[]
}
