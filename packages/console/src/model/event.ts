/** What sources tell the model (console.md 1). */
import type { KubeObject } from '@tenon/api'
import type { SnapshotCatalogue } from '@tenon/ask'
import type { ClaimPrices, JournalEntry, NodeDecision } from '@tenon/operator'
import type { Amounts, ConsoleResource } from './view.ts'

/** Why a pod waits, as `PodExplainer` of `@tenon/ask` found out. */
export interface ToldReason {
  readonly namespace: string
  readonly name: string
  readonly code: string
  readonly summary: string
  readonly plannedFor?: string
}

export type SourceEvent =
  /** These are all objects of a resource; those not among them are gone. */
  | { readonly kind: 'replaced'; readonly resource: ConsoleResource; readonly objects: readonly KubeObject[] }
  /** All objects of a resource were told, one by one. */
  | { readonly kind: 'read'; readonly resource: ConsoleResource }
  | { readonly kind: 'set'; readonly resource: ConsoleResource; readonly object: KubeObject }
  | {
      readonly kind: 'removed'
      readonly resource: ConsoleResource
      readonly namespace?: string
      readonly name: string
    }
  /** New entries, oldest first; those that are known already are left out. */
  | { readonly kind: 'journal'; readonly entries: readonly JournalEntry[] }
  /** What the controller says of every node. */
  | { readonly kind: 'decisions'; readonly decisions: readonly NodeDecision[] }
  /** What the controller says each NodeClaim costs. */
  | { readonly kind: 'prices'; readonly prices: ClaimPrices }
  /** What was paid an hour for each Node, by its name. */
  | { readonly kind: 'nodePrices'; readonly prices: ReadonlyMap<string, number> }
  /** What is for sale, by which whatever else has no price gets one. */
  | {
      readonly kind: 'catalogues'
      readonly catalogues: readonly SnapshotCatalogue[]
      readonly currency?: string
    }
  /** Of all pods that wait. */
  | { readonly kind: 'reasons'; readonly reasons: readonly ToldReason[] }
  /** Usage by name of the node. */
  | { readonly kind: 'usage'; readonly usage: ReadonlyMap<string, Amounts> }
  /** Nothing was heard since then, Unix milliseconds. */
  | { readonly kind: 'stale'; readonly sinceMs: number }
  | { readonly kind: 'fresh' }
  /** Something that this source cannot tell: no right, not served, no Tenon. */
  | { readonly kind: 'absent'; readonly what: string; readonly why: string }
