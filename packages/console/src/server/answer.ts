/** Responses of the page's server, with headers that restrict the browser to what the page needs. */
import { type HttpResponse, oneChunk } from '@tenon/runtime'

/** Own files only; no inline scripts or styles, no frames, no forms. */
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

/** An error that the page shows to the user. */
export function problem(status: number, message: string): HttpResponse {
  return json({ error: message }, status)
}

/** Server-sent events, until one side disconnects. */
export function eventStream(body: AsyncIterable<string>): HttpResponse {
  return { status: 200, headers: { ...guarding, 'content-type': 'text/event-stream; charset=utf-8' }, body }
}

/** As plain text for somebody who opens an address, else as an error that the page shows. */
export function refusal(
  { status, message }: { readonly status: number; readonly message: string },
  accept: string | undefined,
): HttpResponse {
  return accept?.includes('text/html') === true
    ? answered(status, 'text/plain; charset=utf-8', `Tenon console: ${message}.\n`)
    : problem(status, message)
}
