/** Texts of objects on a screen: their width, and cutting them (console.md 2). */
import stringWidth from 'string-width'

const plain = /^[\x20-\x7e]*$/
const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Number of columns of a text. */
export function widthOf(text: string): number {
  return plain.test(text) ? text.length : stringWidth(text)
}

/**
 * Shortens a text to `width` columns by dropping its middle: names of objects differ in their last characters
 * (console.md, trap 7).
 */
export function elided(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width <= 1) return '…'.slice(0, Math.max(0, width))
  const tail = Math.max(1, Math.floor((width - 1) * 0.6))
  const letters = lettersOf(text)
  const end = taken(letters.toReversed(), tail).toReversed().join('')
  const start = taken(letters, width - 1 - widthOf(end)).join('')
  return `${start}…${end}`
}

/** Shortens a text to `width` columns by dropping its end, as for sentences. */
export function clipped(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  return width <= 1 ? '…'.slice(0, Math.max(0, width)) : `${taken(lettersOf(text), width - 1).join('')}…`
}

/** Pads a text, which must not be longer, to exactly `width` columns. */
export function padded(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return side === 'left' ? text + space : space + text
}

function lettersOf(text: string): readonly string[] {
  return plain.test(text) ? text.split('') : Array.from(segmenter.segment(text), ({ segment }) => segment)
}

/** The first characters that fit into `width` columns. */
function taken(letters: readonly string[], width: number): readonly string[] {
  let [count, used] = [0, 0]
  for (const letter of letters) {
    used += widthOf(letter)
    if (used > width) break
    count++
  }
  return letters.slice(0, count)
}
