/** What the stages of a claim's life have in common (lifecycle.md 3). */
import type { ConditionSet, Node, NodeClaim } from '@tenon/api'
import type { Listeners } from '@tenon/runtime'

/** What the stages work on: the claim with its changes so far, and its conditions. */
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
      /** Told once the draft is stored, so that a pass that has to be repeated counts nothing twice. */
      readonly afterStore?: () => Promise<void> | void
      /** Later stages have to wait for another pass: this one worked on old data. */
      readonly isLast?: boolean
    }
  /** The claim is being deleted; nothing more to do in this pass. */
  | { readonly kind: 'deleted' }

/** One stage. */
export interface LifecycleStage {
  /** Claims to look at again after so long, or earlier; absent where nothing but objects wakes the stage. */
  readonly due?: Listeners<{ readonly name: string; readonly afterMs: number }>
  /** A rejection means that the cloud or the API server did not do as asked; the stages after it are run all the same. */
  run(draft: ClaimDraft, signal: AbortSignal): Promise<StageResult>
}
