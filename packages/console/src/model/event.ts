/** Events of sources for the model (console.md 1). */
import type { KubeObject } from '@tenon/api'
import type { SnapshotCatalogue } from '@tenon/ask'
import type { ClaimPrices, JournalEntry, NodeDecision } from '@tenon/operator'
import type { Amounts, ConsoleResource, GroupRow } from './view.ts'

/** Why a pod is pending, as `PodExplainer` of `@tenon/ask` found out. */
export interface ExplainedReason {
  readonly namespace: string
  readonly name: string
  readonly code: string
  readonly summary: string
  readonly plannedFor?: string
}

export type SourceEvent =
  /** The complete list of a resource; objects that are not in it are gone. */
  | { readonly kind: 'replaced'; readonly resource: ConsoleResource; readonly objects: readonly KubeObject[] }
  /** The initial list of a resource is complete. */
  | { readonly kind: 'read'; readonly resource: ConsoleResource }
  | { readonly kind: 'set'; readonly resource: ConsoleResource; readonly object: KubeObject }
  | {
      readonly kind: 'removed'
      readonly resource: ConsoleResource
      readonly namespace?: string
      readonly name: string
    }
  /** New entries, oldest first; known ones are ignored. */
  | { readonly kind: 'journal'; readonly entries: readonly JournalEntry[] }
  /**
   * Entries of the whole journal, oldest first; between its begin and its end, those of `journal` are only the newest. Absent
   * sources have nothing older than `journal`.
   */
  | {
      readonly kind: 'past'
      readonly entries: readonly JournalEntry[]
      readonly stage: 'begins' | 'goes on' | 'ends'
    }
  /** The controller's decisions on all nodes. */
  | { readonly kind: 'decisions'; readonly decisions: readonly NodeDecision[] }
  /** The controller's prices of all NodeClaims. */
  | { readonly kind: 'prices'; readonly prices: ClaimPrices }
  /** Price per hour of Nodes without NodeClaim, by name. */
  | { readonly kind: 'nodePrices'; readonly prices: ReadonlyMap<string, number> }
  /** The catalogue, which gives a price to whatever has none. */
  | {
      readonly kind: 'catalogues'
      readonly catalogues: readonly SnapshotCatalogue[]
      readonly currency?: string
    }
  /** All node groups; a cluster without the Cluster Autoscaler mode has none. */
  | { readonly kind: 'groups'; readonly groups: readonly GroupRow[] }
  /** Of all pending pods. */
  | { readonly kind: 'reasons'; readonly reasons: readonly ExplainedReason[] }
  /** Usage by name of the node. */
  | { readonly kind: 'usage'; readonly usage: ReadonlyMap<string, Amounts> }
  /** No event since this time, in Unix milliseconds. */
  | { readonly kind: 'stale'; readonly sinceMs: number }
  | { readonly kind: 'fresh' }
  /** Something that this source cannot provide: forbidden, not served, or no Tenon. */
  | { readonly kind: 'absent'; readonly what: string; readonly why: string }
