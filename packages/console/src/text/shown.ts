/** Texts of objects without what is not seen: orders, and letters that turn the direction of other text. */

const plain = /^[\x20-\x7e]*$/
/** Orders to a terminal, and letters that turn the direction of what follows or have no width. */
const unseen = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u00ad\u200b\u2060\ufeff]/gu
const named: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\t', '\\t'],
  ['\r', '\\r'],
])

/** One line that gives no orders to a terminal: what is not seen is spelled out. */
export function shownText(text: string): string {
  return plain.test(text) ? text : text.replaceAll(unseen, (letter) => named.get(letter) ?? codeOf(letter))
}

/** The same in as many lines as the text has. */
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
