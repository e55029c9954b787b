import type { LoopErrorType } from '../model.ts'

/** How one iteration ended. */
export type LoopOutcome =
  | { readonly kind: 'done' }
  /** It counts as an error in `errors_total`; a transient one does not count against the health of the process. */
  | { readonly kind: 'failed'; readonly type: LoopErrorType; readonly message: string }

/** Ends an iteration early. */
export class LoopError extends Error {
  readonly type: LoopErrorType

  constructor(type: LoopErrorType, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LoopError'
    this.type = type
  }
}
