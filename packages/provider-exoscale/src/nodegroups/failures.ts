/** Converts failures of calls to the contract's error; nothing else does (cluster-autoscaler.md 1.1, 1.2). */
import { NodeGroupError } from '@tenon/provider'
import { messageOf } from '@tenon/runtime'
import { ExoscaleOperationError, isApiError } from '../api/errors.ts'

/** The nine operations that this mode uses, as in IAM roles. */
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

/** A failed call. For a refusal, the message names the operation that the IAM role must allow. */
export function callFailed(operation: IamOperation, error: unknown): NodeGroupError {
  if (error instanceof NodeGroupError) return error
  const said = messageOf(error)
  // The message is complete, and the caller knows the call.
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

/** Whether the object does not exist. */
export function isGone(error: unknown): boolean {
  return isApiError(error, 'not-found')
}

/** Whether the pool is being changed and may accept the same call later. */
export function isBusy(error: unknown): boolean {
  return isApiError(causeOf(error), 'conflict')
}

/** Whether an operation ended without success. Otherwise its result is unknown. */
export function hasOperationFailed(error: unknown): boolean {
  const cause = causeOf(error)
  return cause instanceof ExoscaleOperationError && cause.reason !== 'deadline'
}

function causeOf(error: unknown): unknown {
  return error instanceof NodeGroupError ? error.cause : error
}
