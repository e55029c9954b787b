/** Which failed attempts may be retried, and after how long. */
import { ExoscaleApiError, ExoscaleTransportError } from './errors.ts'

export const defaultMaxAttempts = 5
const maxWaitMs = 30_000

/**
 * How long to wait before a retry; undefined if the failure is final. A POST is only retried if it certainly had no
 * effect: rate-limited, or never sent.
 */
export function retryDelayMs(error: unknown, method: string, attempt: number): number | undefined {
  const backoffMs = Math.min(1000 * 2 ** (attempt - 1), maxWaitMs)
  if (error instanceof ExoscaleTransportError) {
    return method !== 'POST' || error.neverSent ? backoffMs : undefined
  }
  if (!(error instanceof ExoscaleApiError)) return undefined
  const { status } = error
  const isRepeatable = status === 429 || (method !== 'POST' && status >= 500 && status !== 501)
  if (!isRepeatable) return undefined
  return (status === 429 || status === 503 ? error.retryAfterMs : undefined) ?? backoffMs
}

/** `Retry-After` in milliseconds: seconds or an HTTP date; a date in the past means at once. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
