/** Parses the keys of a terminal in raw mode. */

/** A character as typed, or one of these names. */
export type Key = string

const sequences: ReadonlyMap<string, Key> = new Map([
  ['[A', 'up'],
  ['[B', 'down'],
  ['[C', 'right'],
  ['[D', 'left'],
  ['OA', 'up'],
  ['OB', 'down'],
  ['OC', 'right'],
  ['OD', 'left'],
  ['[H', 'home'],
  ['[F', 'end'],
  ['OH', 'home'],
  ['OF', 'end'],
  ['[1~', 'home'],
  ['[4~', 'end'],
  ['[5~', 'pageup'],
  ['[6~', 'pagedown'],
  ['[Z', 'backtab'],
])
const controls: ReadonlyMap<string, Key> = new Map([
  ['\r', 'enter'],
  ['\n', 'enter'],
  ['\t', 'tab'],
  ['\u007f', 'backspace'],
  ['\b', 'backspace'],
])
// oxlint-disable-next-line no-control-regex
const sequence = /^\u001b(\[[0-9;?]*[ -/]*[@-~]|O[@-~])/

/** The keys in a terminal's input; unknown sequences are dropped. */
export function keysIn(text: string): readonly Key[] {
  const keys: Key[] = []
  for (let rest = text; rest !== ''; ) {
    const [whole, found = ''] = sequence.exec(rest) ?? []
    const letter = String.fromCodePoint(rest.codePointAt(0) ?? 0)
    rest = rest.slice(whole?.length ?? letter.length)
    const key = whole === undefined ? keyOf(letter) : sequences.get(found)
    if (key !== undefined) keys.push(key)
  }
  return keys
}

function keyOf(letter: string): Key | undefined {
  if (letter === '\u001b') return 'esc'
  const named = controls.get(letter)
  if (named !== undefined) return named
  const code = letter.codePointAt(0) ?? 0
  if (code < 0x20) return code === 0 ? undefined : `ctrl-${String.fromCodePoint(code + 0x60)}`
  return letter
}
