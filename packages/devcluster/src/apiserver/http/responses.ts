import type { Status } from '@tenon/api'
import { DocumentBody, type HttpResponse, oneChunk } from '@tenon/runtime'
import type { ApiError, StoredObject } from '../../contract.ts'

const jsonHeaders = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' } as const

/** A JSON document. */
export function jsonResponse(
  status: number,
  document: unknown,
  warnings: readonly string[] = [],
): HttpResponse {
  return textResponse(status, `${JSON.stringify(document)}\n`, warningHeaders(warnings))
}

export function textResponse(
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = { 'content-type': 'text/plain; charset=utf-8' },
): HttpResponse {
  return { status, headers, body: oneChunk(text) }
}

/** The plain-text 404 of kube-apiserver. */
export function pageNotFound(): HttpResponse {
  const type = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
  return textResponse(404, '404 page not found\n', type)
}

export function errorResponse(error: ApiError, warnings: readonly string[] = []): HttpResponse {
  const { retryAfterSeconds } = error.status.details ?? {}
  const retry = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return textResponse(error.code, `${JSON.stringify(error.status)}\n`, {
    ...warningHeaders(warnings),
    ...retry,
  })
}

/** A streamed body. */
export function streamResponse(body: AsyncIterable<string>): HttpResponse {
  return { status: 200, headers: jsonHeaders, body }
}

/** A document that clients in this process may use without parsing. */
export function documentResponse(
  status: number,
  document: unknown,
  text: AsyncIterable<string>,
  warnings: readonly string[] = [],
): HttpResponse {
  return { status, headers: warningHeaders(warnings), body: new DocumentBody(document, text) }
}

export function isStatus(body: StoredObject | Status): body is Status {
  return body.kind === 'Status'
}

/** Above this length in all, warnings are cut so that headers stay within what clients read. */
const mostOfAll = 4096
const mostOfCut = 256

/**
 * Headers of a JSON response, with warnings as kube-apiserver gives them: each once, none with control characters,
 * in UTF-8.
 */
export function warningHeaders(warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return jsonHeaders
  const texts = [...new Set(warnings)].filter((text) => !/\p{Cc}/u.test(text)).map((text) => Array.from(text))
  const isLong = texts.reduce((sum, { length }) => sum + length, 0) > mostOfAll
  const given: string[] = []
  let written = 0
  for (const text of texts) {
    if (isLong && written >= mostOfAll) break
    const cut = isLong ? text.slice(0, mostOfCut) : text
    written += cut.length
    given.push(`299 - "${cut.join('').replace(/[\\"]/g, '\\$&')}"`)
  }
  if (given.length === 0) return jsonHeaders
  return { ...jsonHeaders, warning: Buffer.from(given.join(', '), 'utf8').toString('latin1') }
}
