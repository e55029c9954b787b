/** Converts responses and transport failures into {@link KubeError}; nothing else does. */
import { type Status, ownValue } from '@tenon/api'
import type { Clock, HttpResponse } from '@tenon/runtime'
import { KubeError, type KubeErrorKind } from '../contract.ts'

const kindOfReason: Readonly<Record<string, KubeErrorKind>> = {
  NotFound: 'notFound',
  AlreadyExists: 'alreadyExists',
  Conflict: 'conflict',
  Gone: 'gone',
  Expired: 'gone',
  Invalid: 'invalid',
  BadRequest: 'invalid',
  Forbidden: 'forbidden',
  Unauthorized: 'unauthorized',
  TooManyRequests: 'tooManyRequests',
  InternalError: 'server',
  ServerTimeout: 'server',
  Timeout: 'server',
  ServiceUnavailable: 'server',
}

const kindOfCode: Readonly<Record<number, KubeErrorKind>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'notFound',
  409: 'conflict',
  410: 'gone',
  422: 'invalid',
  429: 'tooManyRequests',
}

/**
 * Our reason for errors about a version that the server has not reached; the server only says so in a cause.
 */
export const resourceVersionTooLarge = 'ResourceVersionTooLarge'

/** The cause of evictions that a PodDisruptionBudget refuses. */
const budgetCause = 'DisruptionBudget'

/** The request, for messages: `GET /api/v1/pods`. */
export type RequestLine = string

/** The error of a response with status 400 or above, whose body may be a Status, plain text or empty. */
export function errorOfResponse(
  asked: RequestLine,
  response: Pick<HttpResponse, 'status' | 'headers'>,
  body: string,
  clock: Pick<Clock, 'now'>,
): KubeError {
  const status = parseStatus(body)
  const retryAfterMs = retryAfterOf(response.headers, clock) ?? retryAfterOfStatus(status)
  if (status !== undefined) return errorOfStatus(asked, status, response.status, retryAfterMs)
  const text = body.trim().slice(0, 200)
  const message = `${asked}: the server answered ${response.status}${text === '' ? '' : `: ${text}`}`
  return new KubeError(kindWithoutStatus(response.status), response.status, message, {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

/** The error of a Status, from a response body or an `ERROR` event of a watch. */
export function errorOfStatus(
  asked: RequestLine,
  status: Status,
  httpStatus = status.code ?? 500,
  retryAfterMs = retryAfterOfStatus(status),
): KubeError {
  const reason = hasCause(status, resourceVersionTooLarge) ? resourceVersionTooLarge : status.reason
  const message = status.message ?? status.reason ?? `the server answered ${httpStatus}`
  // From 1.37 on, a budget that cannot be evaluated refuses evictions with 403, which is no missing right.
  const kind = hasCause(status, budgetCause) ? 'tooManyRequests' : kindOf(status.reason, httpStatus)
  if (kind === 'notFound' && isAboutAnother(asked, status))
    return new KubeError('transport', httpStatus, `${asked}: the answer is about another object: ${message}`)
  return new KubeError(kind, httpStatus, `${asked}: ${message}`, {
    ...(reason !== undefined && { reason }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    serverMessage: message,
    ...causesOf(status),
  })
}

function hasCause({ details }: Status, reason: string): boolean {
  const causes: unknown = details?.causes
  return (
    Array.isArray(causes) && causes.some((cause: { readonly reason?: unknown }) => cause?.reason === reason)
  )
}

function causesOf({ details }: Status): {
  readonly fields?: readonly string[]
  readonly causes?: readonly string[]
} {
  const causes: unknown = details?.causes
  if (!Array.isArray(causes)) return {}
  const texts = (name: 'field' | 'message'): readonly string[] =>
    (causes as readonly { readonly [member in typeof name]?: unknown }[]).flatMap((cause) => {
      const text = cause?.[name]
      return typeof text === 'string' && text !== '' ? [text] : []
    })
  const [fields, messages] = [[...new Set(texts('field'))], texts('message')]
  return {
    ...(fields.length > 0 && { fields }),
    ...(messages.length > 0 && { causes: messages }),
  }
}

/** Wraps what a transport threw; a {@link KubeError} is returned unchanged. */
export function errorOfTransport(asked: RequestLine, cause: unknown): KubeError {
  if (cause instanceof KubeError) return cause
  const text = cause instanceof Error ? cause.message : String(cause)
  return new KubeError('transport', 0, `${asked}: ${text}`, { cause })
}

function kindOf(reason: string | undefined, code: number): KubeErrorKind {
  const known = reason === undefined ? undefined : ownValue(kindOfReason, reason)
  return known ?? kindOfCode[code] ?? (code >= 500 ? 'server' : 'other')
}

/** A proxy does not know objects: that one is missing or has changed, the API server says in a Status. */
function kindWithoutStatus(code: number): KubeErrorKind {
  return code === 404 || code === 409 || code === 410 ? 'other' : kindOf(undefined, code)
}

/** Whether a Status says that some other object does not exist. */
function isAboutAnother(asked: RequestLine, { details }: Status): boolean {
  const [method = '', path = ''] = asked.split(' ')
  const { name = '' } = details ?? {}
  if (name === '' || method === 'POST' || method === 'WATCH') return false
  return !path.split('/').includes(encodeURIComponent(name))
}

function parseStatus(body: string): Status | undefined {
  if (!body.startsWith('{')) return undefined
  try {
    const parsed = JSON.parse(body) as Partial<Status> | null
    return parsed?.kind === 'Status' ? (parsed as Status) : undefined
  } catch {
    // A proxy's response that only looks like JSON is shown as text.
    return undefined
  }
}

function retryAfterOfStatus(status: Status | undefined): number | undefined {
  const seconds = status?.details?.retryAfterSeconds
  return seconds === undefined || seconds <= 0 ? undefined : seconds * 1000
}

/** RFC 9110: seconds or a date. A date is compared with the server's own time, as clocks may disagree. */
function retryAfterOf(headers: HttpResponse['headers'], clock: Pick<Clock, 'now'>): number | undefined {
  const header = headers['retry-after']
  if (header === undefined) return undefined
  const seconds = Number(header)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const at = Date.parse(header)
  const answeredAt = Date.parse(headers['date'] ?? '')
  if (Number.isNaN(at)) return undefined
  return Math.max(0, at - (Number.isNaN(answeredAt) ? clock.now() : answeredAt))
}
