/** Failures that are part of ordinary life: they are told without alarm, and the next pass decides anew. */
import { isKubeError, isMissingRight } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'

/**
 * Whether a failure tells of nothing but a change meanwhile, of an object that others refuse (webhooks, quotas), or of
 * a cloud that cannot do it now. Of several, all have to be so.
 */
export function isExpectedFailure(error: unknown): boolean {
  if (error instanceof AggregateError)
    return error.errors.length > 0 && error.errors.every((each) => isExpectedFailure(each))
  if (isKubeError(error, 'forbidden')) return !isMissingRight(error)
  if (isKubeError(error, 'conflict', 'notFound', 'alreadyExists', 'invalid', 'tooManyRequests')) return true
  if (isProviderError(error)) return error.kind !== 'unauthorized' && error.kind !== 'other'
  return error instanceof Error && error.cause !== undefined && isExpectedFailure(error.cause)
}
