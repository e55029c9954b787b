/** Answers of the page's server, with the headers that keep a browser from doing more than the page needs. */
import { type HttpResponse, oneChunk } from '@tenon/runtime'

/** Nothing but own files; no inline script or style, no frame, no form. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const guarding = {
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
}

/** An answer of one piece. */
export function answered(
  status: number,
  contentType: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return { status, headers: { ...guarding, 'content-type': contentType, ...headers }, body: oneChunk(body) }
}

export function json(value: unknown, status = 200): HttpResponse {
  return answered(status, 'application/json; charset=utf-8', JSON.stringify(value))
}

/** A sentence for a person; the page shows it. */
export function problem(status: number, message: string): HttpResponse {
  return json({ error: message }, status)
}

/** Server-sent events, for as long as both sides want. */
export function eventStream(body: AsyncIterable<string>): HttpResponse {
  return { status: 200, headers: { ...guarding, 'content-type': 'text/event-stream; charset=utf-8' }, body }
}
