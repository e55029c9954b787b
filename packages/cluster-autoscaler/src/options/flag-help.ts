/** Help of `tenon cluster-autoscaler`, from the definitions. */
import type { FlagClass, FlagDefinition } from './flag.ts'
import { flagGroups } from './flag-groups.ts'

const columns = 100
const indent = ' '.repeat(6)

const classWords: Readonly<Record<FlagClass, string>> = {
  S: '',
  A: 'accepted, changes nothing',
  W: 'accepted with a warning, no effect',
}

/** The whole text of `--help`. */
export function flagHelp(program: string, clouds: readonly string[]): string {
  return [
    `Usage: ${program} [flags]`,
    '',
    'Scales node groups with the flags of Cluster Autoscaler. Names may be written with _ for -; flags take their',
    'value after = or a space, a boolean after = only, and durations are such as 10s or 1h30m.',
    '',
    `Clouds: ${clouds.join(', ')}.`,
    ...flagGroups.flatMap(({ title, flags }) => ['', `${title}:`, ...flags.flatMap(linesOf)]),
    '',
  ].join('\n')
}

function linesOf({ name, kind, fallback, class: flagClass, meaning }: FlagDefinition): readonly string[] {
  const value = kind === 'boolean' ? '' : ` ${kind === 'texts' ? 'text, repeatable' : kind}`
  const notes = [fallback === '' ? '' : `default ${fallback}`, classWords[flagClass]].filter(
    (note) => note !== '',
  )
  const note = notes.length === 0 ? '' : `  (${notes.join('; ')})`
  return [`  ${name === 'v' ? '-v, ' : ''}--${name}${value}${note}`, ...wrapped(meaning)]
}

function wrapped(text: string): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + word.length + 1 > columns) {
      lines.push(indent + line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, indent + line]
}
