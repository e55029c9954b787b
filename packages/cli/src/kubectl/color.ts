/** Colours, if the user wants them (https://no-color.org). */
import type { Io } from '../io.ts'
import type { ColorChoice } from './flags.ts'

const codes = { red: 31, green: 32, yellow: 33, bold: 1, dim: 2 } as const

export type Style = keyof typeof codes

/** Colours a text, or returns it as it is. */
export type Paint = (style: Style, text: string) => string

/** On a terminal without `NO_COLOR`, or if requested. No information depends on colour alone. */
export function paintFor(
  { env, isTerminal }: Pick<Io, 'env' | 'isTerminal'>,
  choice: ColorChoice = 'auto',
): Paint {
  const isWanted = choice === 'always' || (choice === 'auto' && isTerminal && (env['NO_COLOR'] ?? '') === '')
  return isWanted ? (style, text) => `\u001b[${codes[style]}m${text}\u001b[0m` : (_style, text) => text
}

/** @param styles by the start of a line, ignoring its indentation. */
export function paintedLines(
  text: string,
  paint: Paint,
  styles: readonly (readonly [start: string, style: Style])[],
): string {
  const painted = (line: string): string => {
    const [, style] = styles.find(([start]) => line.trimStart().startsWith(start)) ?? []
    return style === undefined ? line : paint(style, line)
  }
  return text.split('\n').map(painted).join('\n')
}
