/** JSON of a large object in parts, none of which takes long to make. */
import { eventLoopTurns } from './turns.ts'

const itemsAtOnce = 250

/**
 * Parts that are whole words of JSON each, so that there may be white space between them.
 * @param apart what stands between the items of a list: a comma, and white space.
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
  let before = `${head}[`
  for (let at = 0; at < list.length; at += itemsAtOnce) {
    const items = list.slice(at, at + itemsAtOnce)
    // In a list, what is no value of JSON is null.
    yield before + items.map((item) => JSON.stringify(item) ?? 'null').join(apart)
    before = apart
  }
  yield list.length === 0 ? `${before}]` : ']'
}

/** The parts as the body of an answer: others have their turn between them. */
export async function* inTurns(parts: Iterable<string>): AsyncGenerator<string, void, undefined> {
  for (const part of parts) {
    yield part
    await eventLoopTurns.next()
  }
}
