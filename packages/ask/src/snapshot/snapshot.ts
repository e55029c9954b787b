/** A cluster at one moment, with all that a decision about it reads (ask.md 4). */
import type { InstanceType, KubeObject, NodeClass, ResourceType } from '@tenon/api'
import type { JournalEntry, NodeDecision, OperatorMemory, Settings } from '@tenon/operator'
import type { CloudProvider, NodeDefaults } from '@tenon/provider'

/** Version of the format; a snapshot of a later one is refused. In version 1 each pod was a line by itself. */
export const snapshotVersion = 2

/** What a snapshot says of the cloud beside what it sells. */
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
  /** Unit of all prices, such as `EUR`; absent when it is not known. */
  readonly priceUnit?: string
}

/** What NodePools may buy. */
export interface SnapshotCatalogue {
  /** Names of the NodePools. */
  readonly nodePools: readonly string[]
  /** Undefined when the provider could not tell. */
  readonly instanceTypes: readonly InstanceType[] | undefined
  readonly problem?: string
  readonly defaults?: NodeDefaults
}

/** Where the facts of a snapshot come from. */
export type SnapshotOrigin =
  /** The controller that leads, or one that waits to. */
  | { readonly kind: 'controller'; readonly identity: string; readonly isLeading: boolean }
  /** The objects of a cluster, read without its controller. */
  | { readonly kind: 'objects'; readonly server: string; readonly catalogue: string }

export interface Snapshot {
  /** Unix milliseconds: the clock of every decision on it. */
  readonly takenAtMs: number
  /** Of the program that wrote it. */
  readonly program: string
  readonly origin: SnapshotOrigin
  readonly cloud: SnapshotCloud
  readonly settings: Settings
  /** Trimmed to what decisions read; no Secrets and no ConfigMaps. */
  readonly objects: readonly KubeObject[]
  readonly catalogues: readonly SnapshotCatalogue[]
  readonly memory: OperatorMemory
  /** Why each node is still there, as the controller found out; empty when no controller was asked. */
  readonly nodeDecisions: readonly NodeDecision[]
  /** What the controller did lately, oldest first. */
  readonly journal: readonly JournalEntry[]
}
