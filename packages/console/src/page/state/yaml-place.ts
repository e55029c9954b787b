/** Finds the position of the cursor in a manifest by indentation, which is good enough for suggestions. */

export interface YamlPlace {
  /** Path of the surrounding map: `spec.template.spec`; items of lists are `[]`. */
  readonly parent: string
  /** The typed prefix of the key, or of the value if {@link key} is set. */
  readonly typed: string
  /** The key whose value is being typed. */
  readonly key?: string
}

interface Line {
  /** Column of the key, after the dash of a list item. */
  readonly indent: number
  /** Column of the dash; undefined if the line does not start a list item. */
  readonly dash: number | undefined
  readonly key: string
  readonly rest: string
}

/**
 * State of the walk towards the root: the path so far, outermost first, and the column that the next key must
 * be left of.
 */
interface Way {
  readonly path: readonly string[]
  readonly indent: number
  /** The next key is that of a list, whose dashes may be in the same column. */
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
