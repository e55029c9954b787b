/** A reporter for `node --test`: one line of JSON for each event that a report needs. */
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

/** An error as text: an Error object does not survive JSON. */
export interface ToldError {
  readonly text: string
  readonly failureType?: string
}

const told: ReadonlySet<string> = new Set([
  'test:start',
  'test:pass',
  'test:fail',
  'test:diagnostic',
  'test:summary',
])

export default async function* testEvents(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (told.has(event.type)) yield `${JSON.stringify(event, withErrors)}\n`
  }
}

function withErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value
  const { code, failureType } = value as { readonly code?: unknown; readonly failureType?: string }
  // The test runner's wrapper adds nothing to its cause.
  const cause = code === 'ERR_TEST_FAILURE' ? (value.cause ?? value) : value
  const text = typeof cause === 'string' ? cause : inspect(cause, { depth: 6 })
  return { text, ...(failureType !== undefined && { failureType }) } satisfies ToldError
}
