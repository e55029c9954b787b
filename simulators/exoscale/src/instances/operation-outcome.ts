/** Why an operation failed, as in the API. */
export type OperationReason =
  | 'incorrect'
  | 'unknown'
  | 'unavailable'
  | 'forbidden'
  | 'busy'
  | 'fault'
  | 'partial'
  | 'not-found'
  | 'interrupted'
  | 'unsupported'
  | 'conflict'

export type OperationOutcome =
  | { readonly state: 'success' }
  | { readonly state: 'failure'; readonly reason: OperationReason; readonly message: string }

export const succeeded: OperationOutcome = { state: 'success' }

export function failed(reason: OperationReason, message: string): OperationOutcome {
  return { state: 'failure', reason, message }
}
