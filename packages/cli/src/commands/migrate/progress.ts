/** The steps of a migration, as they are told (adoption.md 2). */

/** A node that stays, and why. */
export interface StayingNode {
  readonly node: string
  readonly reasons: readonly string[]
}

/** What a migration does, as it does it. */
export type Progress =
  /** For the lease of a migration that may have been killed. */
  | { readonly event: 'waiting'; readonly holder: string }
  | { readonly event: 'paused' | 'resumed'; readonly nodePool: string }
  | { readonly event: 'cordoned' | 'uncordoned' | 'removed'; readonly node: string }
  | { readonly event: 'growing'; readonly group: string; readonly from: number; readonly to: number }
  | { readonly event: 'draining'; readonly node: string; readonly pods: number; readonly nodesAfter: number }
  | { readonly event: 'stopped'; readonly node: string; readonly why: string }
  | {
      readonly event: 'ended'
      readonly removed: number
      readonly staying: readonly StayingNode[]
      /** On the way back. */
      readonly pausedNodePool?: string
    }
