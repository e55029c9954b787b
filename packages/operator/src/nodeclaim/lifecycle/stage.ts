/** The interface of the stages of a NodeClaim (lifecycle.md 3). */
import type { ConditionSet, Node, NodeClaim } from '@tenon/api'
import type { Listeners } from '@tenon/runtime'

/** The claim with the changes of this pass so far, and its conditions. */
export interface ClaimDraft {
  readonly claim: NodeClaim
  readonly conditions: ConditionSet
  /** The claim's Node as this pass stored it; the cache may show an older one. */
  readonly node?: Node
}

/** How a stage of a claim ended: on to the next one, or no further. */
export type StageResult =
  | {
      readonly kind: 'continue'
      readonly draft: ClaimDraft
      readonly requeueMs?: number
      /** Asks for another pass with growing pauses. */
      readonly isBackingOff?: boolean
      readonly error?: unknown
      /** Called once the draft is stored, so that a repeated pass counts nothing twice. */
      readonly afterStore?: () => Promise<void> | void
      /** Later stages wait for the next pass, as this one saw old data. */
      readonly isLast?: boolean
    }
  /** The claim is being deleted; nothing more to do in this pass. */
  | { readonly kind: 'deleted' }

/** One stage. */
export interface LifecycleStage {
  /** Notified with claims to reconcile again after so long; undefined if changes of objects are enough. */
  readonly due?: Listeners<{ readonly name: string; readonly afterMs: number }>
  /** A rejection means that the cloud or the API server failed; later stages run all the same. */
  run(draft: ClaimDraft, signal: AbortSignal): Promise<StageResult>
}
