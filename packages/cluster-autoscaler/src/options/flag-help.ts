/** Help of `tenon cluster-autoscaler`, from the definitions. */
import { wrapped } from '@tenon/api/flags'
import type { AutoscalerFlag, FlagClass } from './flag.ts'
import { flagGroups } from './flag-groups.ts'

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

function linesOf({ flag, kind, fallback, class: flagClass, meaning }: AutoscalerFlag): readonly string[] {
  const value = kind === 'boolean' ? '' : ` ${kind === 'texts' ? 'text, repeatable' : kind}`
  const notes = [fallback === '' ? '' : `default ${fallback}`, classWords[flagClass]].filter(
    (note) => note !== '',
  )
  const note = notes.length === 0 ? '' : `  (${notes.join('; ')})`
  return [`  ${flag === 'v' ? '-v, ' : ''}--${flag}${value}${note}`, ...wrapped(meaning)]
}

/** The text of docs/cluster-autoscaler/flags.md. */
export function flagsPage(): string {
  return `${[
    '# Flags of `tenon cluster-autoscaler`',
    '',
    'Written from the definitions in `packages/cluster-autoscaler/src/options/flags/`; a test compares the two.',
    '',
    'A value stands after `=` or a space, that of a boolean after `=` only. `_` and `-` in names are the same. Durations are such as `10s` or `1h30m`. Flags of the kind `texts` may be given several times, each time adding a value; `commas` is a list with commas between. An unknown flag or a value of another kind ends the start with exit code 2.',
    '',
    '| class | a flag of it |',
    '|---|---|',
    '| S | works |',
    '| A | is accepted and changes nothing |',
    '| W | is accepted, and a warning in the log says that it has no effect |',
    ...flagGroups.flatMap(({ title, flags }) => [
      '',
      `## ${title}`,
      '',
      '| flag | kind | default | class | meaning |',
      '|---|---|---|---|---|',
      ...flags.map(({ flag, kind, fallback, class: flagClass, meaning }) => {
        const shown = flag === 'v' ? '`-v`, `--v`' : `\`--${flag}\``
        const initial = fallback === '' ? '' : `\`${fallback}\``
        return `| ${shown} | ${kind} | ${initial} | ${flagClass} | ${meaning} |`
      }),
    ]),
  ].join('\n')}\n`
}
