/** JSON of a large object in parts, none of which takes long to make. */
import { eventLoopTurns } from './turns.ts'

const itemsAtOnce = 250
const charactersAtOnce = 32 * 1024

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
  let part = `${head}[`
  let items = 0
  for (const [at, item] of list.entries()) {
    if (at > 0) part += apart
    // In a list, what is no value of JSON is null.
    part += JSON.stringify(item) ?? 'null'
    if (++items < itemsAtOnce && part.length < charactersAtOnce) continue
    yield part
    part = ''
    items = 0
  }
  yield `${part}]`
}

/** The parts as the body of an answer: others have their turn between them. */
export async function* inTurns(parts: Iterable<string>): AsyncGenerator<string, void, undefined> {
  for (const part of parts) {
    yield part
    await eventLoopTurns.next()
  }
}
