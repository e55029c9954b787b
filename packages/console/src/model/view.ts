/**
 * The state of a cluster for people (console.md 1), as plain data that can be sent as JSON. Times are RFC 3339;
 * ages are derived from them. An unknown value is absent, never 0 or empty. Amounts of resources are in
 * canonical units: millicores, bytes, and counts of everything else.
 */
import type { JournalEntry } from '@tenon/operator'

/** The watched kinds, by plural name. */
export type ConsoleResource = 'nodes' | 'nodeclaims' | 'nodepools' | 'pods'

/** Amounts by resource name. */
export type Amounts = Readonly<Record<string, number>>

/** Requests and allocatable of a resource. */
export interface Share {
  /** Absent if pods could not be listed. */
  readonly used?: number
  /** Absent until the node has reported it. */
  readonly allocatable?: number
}

/** A sum of prices, and the number of unknown prices. */
export interface PriceSum {
  /** Of the known prices; absent if all of several prices are unknown. */
  readonly perHour?: number
  /** For 730 hours. */
  readonly perMonth?: number
  readonly unpriced: number
}

export interface PodCounts {
  /** Without terminated pods. */
  readonly total: number
  /** Without a node. */
  readonly pending: number
  readonly running: number
  /** With a node. */
  readonly bound: number
}

/** Why a node still exists, as `tenon explain` prints it. */
export interface Why {
  /** A `DecisionCause`, for example `pods` or `budget`. */
  readonly cause: string
  readonly message: string
  /** When it ends by itself. */
  readonly until?: string
}

/** What only Tenon's controller knows. */
export interface TenonHeader {
  /** Scheduling passes of the last minute, from the journal. */
  readonly decisionsPerMinute: number
  readonly next?: NextAction
  /** Absent if nothing is paused. */
  readonly paused?: string
  /** Since midnight UTC, in the currency; absent if unknown. */
  readonly savedToday?: number
}

/** The next planned disruption. */
export interface NextAction {
  readonly text: string
  /** Earliest time; absent if it is in progress. */
  readonly at?: string
  readonly node?: string
}

/** The figures at the top of every view. */
export interface Header {
  readonly nodes: number
  /** NodeClaims without a Node. */
  readonly pendingNodes: number
  /** Of all nodes, by resource name. */
  readonly resources: Readonly<Record<string, Share>>
  readonly price: PriceSum
  /** Such as `EUR`. */
  readonly currency?: string
  /** Absent if pods cannot be listed. */
  readonly pods?: PodCounts
  /** Absent without a controller. */
  readonly tenon?: TenonHeader
  /** Time of the last event, if the connection is lost. */
  readonly staleSince?: string
}

/** A node, or a NodeClaim without one. */
export interface NodeRow {
  /** Stable while a claim becomes a node: `claim/NAME`, or `node/NAME` for a node without a NodeClaim. */
  readonly id: string
  /** Of the Node, or of the NodeClaim if there is no Node. */
  readonly name: string
  readonly node?: string
  readonly nodeClaim?: string
  /** Of the Node, or of the NodeClaim if there is no Node; absent for a NodeClaim without an instance. */
  readonly providerId?: string
  readonly nodePool?: string
  readonly resources: Readonly<Record<string, Share>>
  /** Measured usage, if metrics.k8s.io is served. */
  readonly usage?: Amounts
  /** Pods on it that have not terminated; absent if pods cannot be listed. */
  readonly pods?: number
  readonly podsMax?: number
  readonly instanceType?: string
  readonly zone?: string
  readonly capacityType?: string
  readonly pricePerHour?: number
  /** `Launched`, `Registered`, `Initialized`: the next step of a NodeClaim in progress. */
  readonly condition: 'Ready' | 'NotReady' | 'Unknown' | 'Launched' | 'Registered' | 'Initialized'
  /** Transition time of the condition. */
  readonly conditionSince?: string
  /** Message of the condition. */
  readonly conditionMessage?: string
  /** Of the Node, else of the NodeClaim. */
  readonly createdAt?: string
  readonly cordoned: boolean
  readonly deleting: boolean
  readonly drifted: boolean
  readonly why?: Why
  readonly labels: Readonly<Record<string, string>>
}

export interface ClaimRow {
  readonly id: string
  readonly name: string
  readonly nodePool?: string
  readonly nodeClass?: string
  readonly instanceType?: string
  readonly zone?: string
  readonly capacityType?: string
  readonly node?: string
  readonly providerId?: string
  readonly imageId?: string
  /** The next step; absent if all are complete. */
  readonly waitsFor?: 'Launched' | 'Registered' | 'Initialized'
  readonly waitsSince?: string
  readonly waitsMessage?: string
  /** Status of the condition `Ready`. */
  readonly ready: string
  readonly pricePerHour?: number
  readonly createdAt?: string
  readonly deleting: boolean
  readonly drifted: boolean
  readonly why?: Why
  readonly labels: Readonly<Record<string, string>>
}

export interface PoolRow {
  readonly id: string
  readonly name: string
  readonly nodeClass?: string
  readonly weight?: number
  /** NodeClaims of the pool, and those of them with a Node. */
  readonly claims: number
  readonly nodes: number
  readonly drifted: number
  /** Resources of the NodeClaims; `allocatable` is the limit. */
  readonly limits: Readonly<Record<string, Share>>
  readonly price: PriceSum
  readonly ready: string
  readonly readyMessage?: string
  /** Absent if it is not paused. */
  readonly paused?: string
  /** `nodepool`: paused by itself, `tenon resume nodepool/NAME` ends it. `cluster`: the whole cluster is paused. */
  readonly pausedBy?: 'nodepool' | 'cluster'
  /** Of a rollout that has halted. */
  readonly halted?: string
  /** Budgets as written: `10%`, or `0 (Drifted) at 0 9 * * * UTC for 8h`. */
  readonly budgets: readonly string[]
  readonly createdAt?: string
  readonly labels: Readonly<Record<string, string>>
}

/** A node group of the Cluster Autoscaler mode, as its status ConfigMap tells. */
export interface GroupRow {
  readonly id: string
  readonly name: string
  /** Registered nodes; figures are absent for `LeftOut`. */
  readonly nodes?: number
  readonly ready?: number
  readonly minSize?: number
  readonly maxSize?: number
  readonly targetSize?: number
  /** `LeftOut`: no group, because of a mistake in its settings. */
  readonly state: 'Healthy' | 'Unhealthy' | 'InProgress' | 'Backoff' | 'LeftOut'
  /** Why it is not scaled, not shrunk, or left alone after a failure. */
  readonly message?: string
}

/** Why a pod is pending. */
export interface PendingReason {
  /** `tenon`: from `tenon explain`. `scheduler`: from the condition PodScheduled. */
  readonly from: 'tenon' | 'scheduler'
  /** The engine's reason, or that of the condition. */
  readonly code: string
  readonly message: string
}

export interface PendingPodRow {
  /** `NAMESPACE/NAME`. */
  readonly id: string
  readonly namespace: string
  readonly name: string
  /** Such as `replicaset/web-5d4`. */
  readonly owner?: string
  readonly requests: Amounts
  readonly reason?: PendingReason
  /** The node or NodeClaim that it is planned for. */
  readonly plannedFor?: string
  readonly createdAt?: string
  /** Since when the scheduler cannot place it. */
  readonly pendingSince?: string
  readonly deleting: boolean
  readonly labels: Readonly<Record<string, string>>
}

/** A pod on a node; listed per node on request. */
export interface PodOnNode {
  /** `NAMESPACE/NAME`. */
  readonly id: string
  readonly namespace: string
  readonly name: string
  readonly owner?: string
  /** Absent while it waits for one. */
  readonly node?: string
  readonly isRunning: boolean
  readonly requests: Amounts
  readonly labels: Readonly<Record<string, string>>
}

/** An entry of the journal; newer entries have higher ids. */
export type DecisionRow = JournalEntry

export interface OfferingRow {
  readonly id: string
  /** The NodePools that may use it. */
  readonly nodePools: readonly string[]
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
  readonly pricePerHour?: number
  readonly available: boolean
  /** Why it is unavailable. */
  readonly because?: string
  /** When it is tried again. */
  readonly until?: string
}

/** A problem that needs the user's attention. */
export interface Problem {
  readonly id: string
  readonly kind:
    | 'paused'
    | 'rolloutHalted'
    | 'offeringShort'
    | 'poolNotReady'
    | 'groupNotScaled'
    | 'nodeNotReady'
    | 'podsPending'
  readonly text: string
  readonly since?: string
  /** Such as `nodepool/web`. */
  readonly object?: string
}

/** Something that is not shown, and why. */
export interface Absent {
  /** A resource, or `journal`, `decisions`, `offerings`, `prices`, `reasons`, `usage`. */
  readonly what: string
  /** One sentence. */
  readonly why: string
}

/** Rows by name of their table in {@link ConsoleView}. */
export interface TableRows {
  readonly nodes: NodeRow
  readonly claims: ClaimRow
  readonly pools: PoolRow
  readonly groups: GroupRow
  readonly pendingPods: PendingPodRow
  readonly decisions: DecisionRow
  readonly offerings: OfferingRow
}

export type TableName = keyof TableRows

/** The whole view at one moment. Rows are not sorted. */
export type ConsoleView = {
  readonly [Table in TableName]: readonly TableRows[Table][]
} & {
  readonly header: Header
  readonly problems: readonly Problem[]
  readonly absent: readonly Absent[]
}

/** Changes of one table: added or changed rows, and ids of removed ones. */
export type TableChange<Rows extends { readonly [Table in TableName]: unknown }> = {
  readonly [Table in TableName]: {
    readonly table: Table
    readonly set: readonly Rows[Table][]
    readonly removed: readonly string[]
  }
}[TableName]

/** Changes since the last call; other rows are unchanged. */
export type ViewChange =
  | TableChange<TableRows>
  | { readonly header: Header }
  | { readonly problems: readonly Problem[] }
  | { readonly absent: readonly Absent[] }
