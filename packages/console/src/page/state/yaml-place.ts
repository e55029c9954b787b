/** Where in a manifest somebody is typing, by its indentation: good enough to offer fields. Pure. */

export interface YamlPlace {
  /** Path of the map that holds the line, as hints have it: `spec.template.spec`; items of lists are `[]`. */
  readonly parent: string
  /** What is typed of the key; of the value when {@link key} is told. */
  readonly typed: string
  /** The key whose value is typed. */
  readonly key?: string
}

interface Line {
  /** Column of the key, behind the dash of an item. */
  readonly indent: number
  /** Column of the dash; undefined of a line that begins no item. */
  readonly dash: number | undefined
  readonly key: string
  readonly rest: string
}

/** What was found on the way up: names from the outermost on, and the column that the next one stands before. */
interface Way {
  readonly path: readonly string[]
  readonly indent: number
  /** The next one is the key of a list, which may stand in the column of its dashes. */
  readonly isInList: boolean
}

/** @param offset of the cursor, in characters. */
export function placeIn(text: string, offset: number): YamlPlace {
  const lines = text.slice(0, offset).split('\n')
  const last = lines.at(-1) ?? ''
  const current = read(last)
  let way: Way = inItem({ path: [], indent: current.indent, isInList: false }, current)
  for (const raw of lines.slice(0, -1).toReversed()) {
    if (raw.startsWith('---') || (way.indent === 0 && !way.isInList)) break
    if (!/^\s*(#|$)/.test(raw)) way = upTo(way, read(raw))
  }
  const parent = way.path.join('.').replaceAll('.[]', '[]')
  const isValue = current.rest !== '' || /:\s/.test(last)
  return isValue ? { parent, key: current.key, typed: current.rest } : { parent, typed: current.key }
}

function upTo(way: Way, line: Line): Way {
  if (!way.isInList && line.dash !== undefined && line.indent === way.indent) return inItem(way, line)
  const isParent =
    line.indent < way.indent || (way.isInList && line.dash === undefined && line.indent === way.indent)
  if (!isParent || line.key === '' || line.rest !== '') return way
  return inItem({ path: [line.key, ...way.path], indent: line.indent, isInList: false }, line)
}

function inItem(way: Way, { dash }: Line): Way {
  return dash === undefined ? way : { path: ['[]', ...way.path], indent: dash, isInList: true }
}

function read(raw: string): Line {
  const [, space = '', dash = '', body = ''] = /^(\s*)(- +)?(.*)$/.exec(raw) ?? []
  const [, key = body, rest = ''] = /^([\w./-]+):\s*(.*)$/.exec(body) ?? []
  return {
    indent: space.length + dash.length,
    dash: dash === '' ? undefined : space.length,
    key: key.trim(),
    rest,
  }
}
