/** The one place where failures of calls become the contract's error (cluster-autoscaler.md 1.1, 1.2). */
import { NodeGroupError } from '@tenon/provider'
import { messageOf } from '@tenon/runtime'
import { ExoscaleOperationError, isApiError } from '../api/errors.ts'

/** The nine operations that this mode uses, as IAM roles name them. */
export type IamOperation =
  | 'get-instance'
  | 'get-instance-pool'
  | 'get-quota'
  | 'get-operation'
  | 'list-sks-clusters'
  | 'scale-sks-nodepool'
  | 'evict-sks-nodepool-members'
  | 'scale-instance-pool'
  | 'evict-instance-pool-members'

const changing: ReadonlySet<IamOperation> = new Set(['scale-sks-nodepool', 'scale-instance-pool'])

/** A failed call. A refusal names the operation that the IAM role has to allow. */
export function callFailed(operation: IamOperation, error: unknown): NodeGroupError {
  if (error instanceof NodeGroupError) return error
  const said = messageOf(error)
  // It says itself that it failed, and of what call it is, the caller knows.
  if (error instanceof ExoscaleOperationError) return new NodeGroupError(said, { cause: error })
  return new NodeGroupError(`${operation} failed: ${said}${fixOf(operation, error)}`, { cause: error })
}

function fixOf(operation: IamOperation, error: unknown): string {
  if (isApiError(error, 'unauthorized'))
    return `; check EXOSCALE_API_KEY and EXOSCALE_API_SECRET, and that the IAM role of the key allows ${operation}`
  if (!isApiError(error, 'forbidden')) return ''
  const quota = changing.has(operation) ? ', and check the quota of the organisation' : ''
  return `; allow ${operation} in the IAM role of EXOSCALE_API_KEY${quota}`
}

/** Whether the API says that there is no such thing. */
export function isGone(error: unknown): boolean {
  return isApiError(error, 'not-found')
}

/** Whether a pool may take the same call later: it is being changed. */
export function isBusy(error: unknown): boolean {
  return isApiError(causeOf(error), 'conflict')
}

/** Whether an operation ended and did not succeed; otherwise what became of it is not known. */
export function hasOperationFailed(error: unknown): boolean {
  const cause = causeOf(error)
  return cause instanceof ExoscaleOperationError && cause.reason !== 'deadline'
}

function causeOf(error: unknown): unknown {
  return error instanceof NodeGroupError ? error.cause : error
}
