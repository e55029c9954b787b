import type { LoopErrorType } from '../model.ts'

/** The result of an iteration. */
export type LoopOutcome =
  | { readonly kind: 'done' }
  /** Counted in `errors_total`. A transient error does not affect the health check. */
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
