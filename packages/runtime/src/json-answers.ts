/** Checks of every API response before its content is used. */
import type { HttpResponse } from './transport.ts'

/** The members of a JSON object. */
export type JsonFields = Readonly<Record<string, unknown>>

/** What is wrong with a parsed answer, for messages; undefined when it is what was asked for. */
export type AnswerCheck = (body: unknown) => string | undefined

/**
 * What is wrong with the head of an answer below 400, for messages; undefined when a JSON body may follow.
 * An API that answers with another address, without a body or with a page for people was not reached.
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

/** Whether a body of this Content-Type can be JSON; one that is not told can. */
export function isJsonType(contentType: string | undefined): boolean {
  return contentType === undefined || /^application\/(?:[-\w.]+\+)?json\b/i.test(contentType.trim())
}

/** Whether a parsed value is an object, not null and no list. */
export function isJsonFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a parsed value is a text that says something. */
export function isFullText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
