/** JSON of a large object in parts, none of which takes long to make. */

const itemsAtOnce = 250

/** Parts that are whole words of JSON each, so that there may be white space between them. */
export function* jsonParts(value: Readonly<Record<string, unknown>>): Generator<string, void, undefined> {
  let before = '{'
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    const head = `${before}${JSON.stringify(name)}:`
    before = ','
    if (Array.isArray(member)) yield* listParts(head, member)
    else yield head + JSON.stringify(member)
  }
  yield before === '{' ? '{}' : '}'
}

function* listParts(head: string, list: readonly unknown[]): Generator<string, void, undefined> {
  let before = `${head}[`
  for (let at = 0; at < list.length; at += itemsAtOnce) {
    const items = list.slice(at, at + itemsAtOnce)
    yield before + items.map((item) => JSON.stringify(item)).join()
    before = ','
  }
  yield list.length === 0 ? `${before}]` : ']'
}
