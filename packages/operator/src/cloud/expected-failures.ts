import { isKubeError, isMissingRight } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'

/**
 * Whether a failure needs no alarm, as the next pass tries again: an object has changed, was refused by a webhook or quota, or
 * the cloud cannot do it now. Of an AggregateError, all must be so.
 */
export function isExpectedFailure(error: unknown): boolean {
  if (error instanceof AggregateError)
    return error.errors.length > 0 && error.errors.every((each) => isExpectedFailure(each))
  if (isKubeError(error, 'forbidden')) return !isMissingRight(error)
  if (isKubeError(error, 'conflict', 'notFound', 'alreadyExists', 'invalid', 'tooManyRequests')) return true
  if (isProviderError(error)) return error.kind !== 'unauthorized' && error.kind !== 'other'
  return error instanceof Error && error.cause !== undefined && isExpectedFailure(error.cause)
}
