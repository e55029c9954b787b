/** Errors of calls to Exoscale, before they are converted to errors of the contract. */

/** A response with status 400 or above. `code` depends only on the status. */
export class ExoscaleApiError extends Error {
  readonly status: number
  readonly code: ExoscaleErrorCode
  /** Texts of the `errors` list in the response. */
  readonly details: readonly string[]
  readonly retryAfterMs: number | undefined

  constructor(status: number, message: string, details: readonly string[] = [], retryAfterMs?: number) {
    const code = codes[status] ?? (status >= 500 ? 'server' : 'other')
    const said = [message, ...details].filter((text) => text !== '').join('; ')
    super(`Exoscale API answered ${status} (${code})${said === '' ? '' : `: ${said}`}`)
    this.name = 'ExoscaleApiError'
    this.status = status
    this.code = code
    this.details = details
    this.retryAfterMs = retryAfterMs
  }
}

export type ExoscaleErrorCode =
  | 'bad-request'
  | 'unauthorized'
  | 'payment-required'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'unprocessable'
  | 'throttled'
  | 'unavailable'
  | 'server'
  | 'other'

const codes: Readonly<Record<number, ExoscaleErrorCode>> = {
  400: 'bad-request',
  401: 'unauthorized',
  402: 'payment-required',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  422: 'unprocessable',
  429: 'throttled',
  503: 'unavailable',
}

/**
 * No valid response: refused, reset, timed out, or not as expected. Unless `neverSent`, the call may have taken effect.
 */
export class ExoscaleTransportError extends Error {
  readonly neverSent: boolean

  constructor(message: string, neverSent: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ExoscaleTransportError'
    this.neverSent = neverSent
  }
}

/** No connection: nothing was sent. */
export class ExoscaleConnectionError extends Error {
  constructor(message: string, options: ErrorOptions) {
    super(message, options)
    this.name = 'ExoscaleConnectionError'
  }
}

/** An operation that failed, or did not end in time. */
export class ExoscaleOperationError extends Error {
  /** `unavailable`, `busy`, …; `deadline` if the wait timed out. */
  readonly reason: string
  /** The resource of the operation, if the response names it. */
  readonly referenceId: string | undefined

  constructor(operationId: string, reason: string, message: string, referenceId: string | undefined) {
    super(`operation ${operationId} failed: ${reason}${message === '' ? '' : `: ${message}`}`)
    this.name = 'ExoscaleOperationError'
    this.reason = reason
    this.referenceId = referenceId
  }
}

/** Whether it is an API error with one of `codes`. */
export function isApiError(
  error: unknown,
  ...wanted: readonly ExoscaleErrorCode[]
): error is ExoscaleApiError {
  return error instanceof ExoscaleApiError && wanted.includes(error.code)
}

/** Reads an error body in any of its forms: message, error, RFC 9457, plain text, unexpected JSON. */
export function apiErrorFrom(
  status: number,
  body: string,
  retryAfterMs: number | undefined,
): ExoscaleApiError {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return new ExoscaleApiError(status, body.trim().slice(0, 1000), [], retryAfterMs)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    return new ExoscaleApiError(status, typeof parsed === 'string' ? parsed : '', [], retryAfterMs)
  }
  const fields = parsed as Readonly<Record<string, unknown>>
  const message =
    textOf(fields.message) ??
    textOf(fields.error) ??
    [textOf(fields.title), textOf(fields.detail)].filter((text) => text !== undefined).join(': ')
  const errors = Array.isArray(fields.errors) ? (fields.errors as unknown[]).map(detailOf) : []
  return new ExoscaleApiError(
    status,
    message,
    errors.filter((text) => text !== ''),
    retryAfterMs,
  )
}

function detailOf(entry: unknown): string {
  if (typeof entry === 'string') return entry
  if (typeof entry !== 'object' || entry === null) return ''
  const { detail, message, location } = entry as Readonly<Record<string, unknown>>
  const said = textOf(detail) ?? textOf(message) ?? ''
  return textOf(location) === undefined ? said : `${textOf(location)}: ${said}`
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
