/** Checks API responses before their content is used. */
import type { HttpResponse } from './transport.ts'

export type JsonFields = Readonly<Record<string, unknown>>

/** What is wrong with a parsed response, for messages; undefined if it is as requested. */
export type AnswerCheck = (body: unknown) => string | undefined

/**
 * What is wrong with the status and headers of a response below 400, for messages; undefined if a JSON body may
 * follow. A redirect, a response without a body or an HTML page means that the API was not reached.
 */
export function headFault({ status, headers }: Pick<HttpResponse, 'status' | 'headers'>): string | undefined {
  if (status >= 300) {
    const { location } = headers
    return `the server answered ${status}${location === undefined ? '' : ` with another address, ${location}`}, which is not followed`
  }
  if (status < 200 || status === 204 || status === 205) return `the server answered ${status} without a body`
  return isJsonType(headers['content-type'])
    ? undefined
    : `the answer is ${headers['content-type']}, not JSON`
}

/** Whether a body of this Content-Type can be JSON; a missing one can. */
export function isJsonType(contentType: string | undefined): boolean {
  return contentType === undefined || /^application\/(?:[-\w.]+\+)?json\b/i.test(contentType.trim())
}

export function isJsonFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isFullText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
