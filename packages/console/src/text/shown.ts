/** Makes control characters and bidirectional controls in texts of objects visible. */

const plain = /^[\x20-\x7e]*$/
/** Control characters, bidirectional controls, and characters without width. */
const unseen = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u00ad\u200b\u2060\ufeff]/gu
const named: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\t', '\\t'],
  ['\r', '\\r'],
])

/** A text as one line, with invisible characters escaped. */
export function shownText(text: string): string {
  return plain.test(text) ? text : text.replaceAll(unseen, (letter) => named.get(letter) ?? codeOf(letter))
}

/** Keeps line breaks, and escapes other invisible characters. */
export function shownLines(text: string): string {
  return plain.test(text)
    ? text
    : text.replaceAll(unseen, (letter) => (named.has(letter) ? letter : codeOf(letter)))
}

function codeOf(letter: string): string {
  const code = letter.codePointAt(0) ?? 0
  return code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}
