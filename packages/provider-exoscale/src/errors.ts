/** Converts failures of the cloud to errors of the contract; nothing else does. */
import { isKubeError } from '@tenon/kube'
import { ProviderError } from '@tenon/provider'
import {
  ExoscaleApiError,
  type ExoscaleErrorCode,
  ExoscaleOperationError,
  ExoscaleTransportError,
  isApiError,
} from './api/errors.ts'

/** Condition reasons of failed launches. */
export const launchReasons = {
  token: 'BootstrapTokenCreationFailed',
  instance: 'InstanceCreationFailed',
  node: 'NodeCreationFailed',
} as const

export type LaunchReason = (typeof launchReasons)[keyof typeof launchReasons]

/** Any failure as a {@link ProviderError}; a ProviderError is returned unchanged. */
export function providerErrorFrom(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error
  const message = messageOf(error)
  const retryAfterMs = error instanceof ExoscaleApiError ? error.retryAfterMs : undefined
  const details = { cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  if (isApiError(error, 'throttled')) return new ProviderError('throttled', message, details)
  if (isApiError(error, 'unauthorized', 'forbidden')) {
    return new ProviderError('unauthorized', message, details)
  }
  return new ProviderError('other', message, details)
}

/** A failed launch: denied access and rate limits keep their own kinds, all else is `create`. */
export function launchError(error: unknown, reason: LaunchReason): ProviderError {
  const known = providerErrorFrom(error)
  if (known.kind !== 'other') return known
  // If the cloud does not respond, or a write to the cluster fails, that says nothing about the type.
  const isUnanswered =
    isKubeError(error) || isOutcomeUnknown(error) || error instanceof ExoscaleTransportError
  const blames = isUnanswered ? { blames: { what: 'cloud' } as const } : {}
  return new ProviderError('create', messageOf(error), { reason, cause: error, ...blames })
}

/** Whether the call may have taken effect although it failed. */
export function isOutcomeUnknown(error: unknown): boolean {
  if (error instanceof ExoscaleTransportError) return !error.neverSent
  if (error instanceof ExoscaleOperationError) return error.reason === 'deadline'
  return error instanceof ExoscaleApiError && error.status >= 500 && error.status !== 501
}

/** What a user can do about a refusal, besides reading the API's message. */
const fixes: Readonly<Partial<Record<ExoscaleErrorCode, string>>> = {
  unauthorized:
    'check EXOSCALE_API_KEY and EXOSCALE_API_SECRET, that the key has not expired, and the clock of this host',
  forbidden:
    'check that the IAM role of EXOSCALE_API_KEY allows this compute operation, and that the organisation may use the instance type',
  'payment-required': 'check the billing of the organisation in the Exoscale portal',
  'bad-request': 'check templateID, diskSize and the groups and networks of the ExoscaleNodeClass',
  unprocessable: 'check templateID, diskSize and the groups and networks of the ExoscaleNodeClass',
  conflict: 'something else is changing it; it is retried',
  throttled: 'too many calls with this API key; use separate keys for other programs',
}

function messageOf(error: unknown): string {
  if (isKubeError(error)) return `Kubernetes API: ${error.message}`
  const fix = error instanceof ExoscaleApiError ? fixes[error.code] : undefined
  const said = error instanceof Error ? error.message : String(error)
  return fix === undefined ? said : `${said}; ${fix}`
}
