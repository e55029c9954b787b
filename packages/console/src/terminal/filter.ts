/** The filters of `/`. */

/** The parts of a row that filters read. */
export interface Filterable {
  readonly text: string
  readonly labels: Readonly<Record<string, string>>
}

/** Parses a label selector; throws with a message for people. */
export type LabelMatcher = (selector: string) => (labels: Readonly<Record<string, string>>) => boolean

/**
 * `text`, `!text`, `-l selector`, `-f letters`; case-insensitive.
 * @throws Error if a label selector is invalid.
 */
export function filterOf(text: string, matcher: LabelMatcher): (row: Filterable) => boolean {
  const trimmed = text.trim()
  if (trimmed.startsWith('-l')) {
    const matches = matcher(trimmed.slice(2).trim())
    return ({ labels }) => matches(labels)
  }
  if (trimmed.startsWith('-f')) {
    const letters = Array.from(trimmed.slice(2).trim().toLowerCase())
    return (row) => hasInOrder(row.text.toLowerCase(), letters)
  }
  const isInverse = trimmed.startsWith('!')
  const part = (isInverse ? trimmed.slice(1) : trimmed).toLowerCase()
  return (row) => row.text.toLowerCase().includes(part) !== isInverse
}

function hasInOrder(text: string, letters: readonly string[]): boolean {
  let from = 0
  for (const letter of letters) {
    const at = text.indexOf(letter, from)
    if (at < 0) return false
    from = at + letter.length
  }
  return true
}
