/** Serializes a large object in parts, so that no single step blocks the event loop. */
import { eventLoopTurns } from './turns.ts'

const itemsAtOnce = 250
const charactersAtOnce = 32 * 1024

/**
 * Yields JSON that is split between tokens, so that white space may be inserted between parts.
 * @param apart the separator of list items: a comma and white space.
 */
export function* jsonParts(
  value: Readonly<Record<string, unknown>>,
  apart = ',',
): Generator<string, void, undefined> {
  let before = '{'
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    const head = `${before}${JSON.stringify(name)}:`
    before = apart
    if (Array.isArray(member)) yield* listParts(head, member, apart)
    else yield head + JSON.stringify(member)
  }
  yield before === '{' ? '{}' : '}'
}

function* listParts(
  head: string,
  list: readonly unknown[],
  apart: string,
): Generator<string, void, undefined> {
  let part = `${head}[`
  let items = 0
  for (const [at, item] of list.entries()) {
    if (at > 0) part += apart
    // As in JSON, an item that is not serializable is null.
    part += JSON.stringify(item) ?? 'null'
    if (++items < itemsAtOnce && part.length < charactersAtOnce) continue
    yield part
    part = ''
    items = 0
  }
  yield `${part}]`
}

/** Yields the parts as a response body, and gives the event loop a turn after each. */
export async function* inTurns(parts: Iterable<string>): AsyncGenerator<string, void, undefined> {
  for (const part of parts) {
    yield part
    await eventLoopTurns.next()
  }
}
