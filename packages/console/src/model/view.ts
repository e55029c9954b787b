/**
 * What a person sees of a cluster (console.md 1), as plain data that can be sent as JSON. Times are RFC 3339: a
 * face derives ages from them. What is not known is absent, never 0 or empty. Amounts of resources are in
 * canonical units: thousandths of a core, bytes, and whole numbers of everything else.
 */
import type { JournalEntry } from '@tenon/operator'

/** Kinds of objects that are watched, by their plural names. */
export type ConsoleResource = 'nodes' | 'nodeclaims' | 'nodepools' | 'pods'

/** Amounts by name of the resource. */
export type Amounts = Readonly<Record<string, number>>

/** What is asked for of what there is. */
export interface Share {
  /** Absent when pods could not be read. */
  readonly used?: number
  /** Absent until a node has told. */
  readonly allocatable?: number
}

/** A sum of prices, and how many parts of it have no known price. */
export interface PriceSum {
  /** Of what has a known price; absent when there is something and nothing of it has. */
  readonly perHour?: number
  /** For 730 hours. */
  readonly perMonth?: number
  readonly unpriced: number
}

export interface PodCounts {
  /** Pods that have ended are in no number. */
  readonly total: number
  /** Without a node. */
  readonly pending: number
  readonly running: number
  /** With a node. */
  readonly bound: number
}

/** Why a node is still there, as `tenon explain` says it. */
export interface Why {
  /** Of `DecisionCause`, for example `pods` or `budget`. */
  readonly cause: string
  readonly message: string
  /** When it ends by itself. */
  readonly until?: string
}

/** What only a Tenon knows. */
export interface TenonHeader {
  /** Scheduling passes that the journal tells of for the last minute. */
  readonly decisionsPerMinute: number
  readonly next?: NextAction
  /** Absent while nothing is paused. */
  readonly paused?: string
  /** Since midnight UTC, in the currency; absent when nothing is known. */
  readonly savedToday?: number
}

/** What is planned next. */
export interface NextAction {
  readonly text: string
  /** When it can be at the earliest; absent: under way. */
  readonly at?: string
  readonly node?: string
}

/** One of them stands above everything. */
export interface Header {
  readonly nodes: number
  /** NodeClaims that have no Node yet. */
  readonly pendingNodes: number
  /** Of all nodes, by name of the resource. */
  readonly resources: Readonly<Record<string, Share>>
  readonly price: PriceSum
  /** Such as `EUR`. */
  readonly currency?: string
  /** Absent when pods cannot be read. */
  readonly pods?: PodCounts
  /** Absent when no Tenon tells. */
  readonly tenon?: TenonHeader
  /** Since when nothing was heard of the cluster. */
  readonly staleSince?: string
}

/** A node, or a NodeClaim that has none yet. */
export interface NodeRow {
  /** Stays while a claim becomes its node: `claim/NAME`, or `node/NAME` for a node without a NodeClaim. */
  readonly id: string
  /** Of the Node, else of the NodeClaim. */
  readonly name: string
  readonly node?: string
  readonly nodeClaim?: string
  /** Of the Node, else of the NodeClaim; absent for a NodeClaim that was not launched: it is no instance yet. */
  readonly providerId?: string
  readonly nodePool?: string
  readonly resources: Readonly<Record<string, Share>>
  /** Measured usage, where metrics.k8s.io serves it. */
  readonly usage?: Amounts
  /** Pods on it that have not ended; absent when pods cannot be read. */
  readonly pods?: number
  readonly podsMax?: number
  readonly instanceType?: string
  readonly zone?: string
  readonly capacityType?: string
  readonly pricePerHour?: number
  /** `Launched`, `Registered`, `Initialized`: the step that a pending one has to take next. */
  readonly condition: 'Ready' | 'NotReady' | 'Unknown' | 'Launched' | 'Registered' | 'Initialized'
  /** Since when it is so. */
  readonly conditionSince?: string
  /** What is said about the condition. */
  readonly conditionMessage?: string
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
  /** The step that it has to take next; absent once it has taken all. */
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
  /** NodeClaims that name it, and of them those with a Node. */
  readonly claims: number
  readonly nodes: number
  readonly drifted: number
  /** What NodeClaims have of what they may have; `allocatable` is the limit. */
  readonly limits: Readonly<Record<string, Share>>
  readonly price: PriceSum
  readonly ready: string
  readonly readyMessage?: string
  /** Absent while it is not paused. */
  readonly paused?: string
  /** Whose pause it is: its own, which `tenon resume nodepool/NAME` ends, or that of the cluster. */
  readonly pausedBy?: 'nodepool' | 'cluster'
  /** Of a rollout that has halted. */
  readonly halted?: string
  /** Budgets as written: `10%`, or `0 (Drifted) at 0 9 * * * UTC for 8h`. */
  readonly budgets: readonly string[]
  readonly createdAt?: string
  readonly labels: Readonly<Record<string, string>>
}

/** Why a pod waits. */
export interface PendingReason {
  /** `tenon`: `tenon explain` says it. `scheduler`: the condition PodScheduled does. */
  readonly from: 'tenon' | 'scheduler'
  /** The engine's reason, or that of the condition. */
  readonly code: string
  readonly message: string
}

/** A pod that has no node. */
export interface PendingPodRow {
  /** `NAMESPACE/NAME`. */
  readonly id: string
  readonly namespace: string
  readonly name: string
  /** Such as `replicaset/web-5d4`. */
  readonly owner?: string
  readonly requests: Amounts
  readonly reason?: PendingReason
  /** The node or NodeClaim that it is meant for. */
  readonly plannedFor?: string
  readonly createdAt?: string
  /** Since when the scheduler finds no place. */
  readonly pendingSince?: string
  readonly deleting: boolean
  readonly labels: Readonly<Record<string, string>>
}

/** A pod on a node; asked for node by node. */
export interface PodOnNode {
  /** `NAMESPACE/NAME`. */
  readonly id: string
  readonly namespace: string
  readonly name: string
  readonly owner?: string
  readonly isRunning: boolean
  readonly requests: Amounts
  readonly labels: Readonly<Record<string, string>>
}

/** An entry of the journal; the newest have the highest ids. */
export type DecisionRow = JournalEntry

/** A type in a zone with a capacity type. */
export interface OfferingRow {
  readonly id: string
  /** That may buy it. */
  readonly nodePools: readonly string[]
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
  readonly pricePerHour?: number
  readonly available: boolean
  /** Why it cannot be bought. */
  readonly because?: string
  /** When it is tried again. */
  readonly until?: string
}

/** Something that somebody should look at. */
export interface Problem {
  readonly id: string
  readonly kind:
    | 'paused'
    | 'rolloutHalted'
    | 'offeringShort'
    | 'poolNotReady'
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

/** Rows of the tables by their names in {@link ConsoleView}. */
export interface TableRows {
  readonly nodes: NodeRow
  readonly claims: ClaimRow
  readonly pools: PoolRow
  readonly pendingPods: PendingPodRow
  readonly decisions: DecisionRow
  readonly offerings: OfferingRow
}

export type TableName = keyof TableRows

/** All of it at one moment. Rows are in no particular order. */
export type ConsoleView = {
  readonly [Table in TableName]: readonly TableRows[Table][]
} & {
  readonly header: Header
  readonly problems: readonly Problem[]
  readonly absent: readonly Absent[]
}

/** Of one table: rows that are new or others than they were, and ids of those that have gone. */
export type TableChange<Rows extends { readonly [Table in TableName]: unknown }> = {
  readonly [Table in TableName]: {
    readonly table: Table
    readonly set: readonly Rows[Table][]
    readonly removed: readonly string[]
  }
}[TableName]

/** What has changed since the last time; rows that are not named are as they were. */
export type ViewChange =
  | TableChange<TableRows>
  | { readonly header: Header }
  | { readonly problems: readonly Problem[] }
  | { readonly absent: readonly Absent[] }
