/** Parses the documentation comments of a chart's `values.yaml`. */

export interface DocumentedValue {
  /** Such as `controller.image.tag`. */
  readonly path: string
  /** Its default as YAML; several lines unless it is a scalar, empty if it is unset. */
  readonly initial: string
  readonly meaning: string
}

/**
 * The values whose key is preceded by a comment that begins with `# -- `. Supports only the block style of
 * these files: indentation of two, no anchors, no multi-line strings.
 */
export function documentedValues(yaml: string): readonly DocumentedValue[] {
  const lines = yaml.split('\n')
  const found: DocumentedValue[] = []
  const path: string[] = []
  let comment: string[] = []
  for (const [index, line] of lines.entries()) {
    const said = /^ *# (?:-- )?(.*)$/.exec(line)?.[1]
    if (said !== undefined) {
      comment.push(said)
      continue
    }
    const key = /^( *)([A-Za-z][\w./-]*):(?: (.*))?$/.exec(line)
    if (key !== null) {
      const [, blanks = '', name = '', plain = ''] = key
      path.splice(blanks.length / 2, path.length, name)
      if (comment.length > 0) {
        const initial = plain === '' ? below(lines, index + 1, blanks.length) : plain
        found.push({ path: path.join('.'), initial, meaning: comment.join(' ') })
      }
    }
    comment = []
  }
  return found
}

/** The lines after `start` that are indented deeper than `depth`. */
function below(lines: readonly string[], start: number, depth: number): string {
  const end = lines.findIndex((line, index) => index >= start && !line.startsWith(' '.repeat(depth + 1)))
  const own = lines.slice(start, end === -1 ? undefined : end)
  return own.length === 0 ? '' : `\n${own.join('\n')}`
}
