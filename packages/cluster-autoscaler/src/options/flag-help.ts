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

function linesOf(definition: AutoscalerFlag): readonly string[] {
  const { flag, kind, fallback, class: flagClass, meaning } = definition
  const value = kind === 'boolean' ? '' : ` ${kind === 'texts' ? 'text, repeatable' : kind}`
  const notes = [
    fallback === '' ? '' : `default ${fallback}`,
    classWords[flagClass],
    cloudNote(definition),
  ].filter((note) => note !== '')
  const note = notes.length === 0 ? '' : `  (${notes.join('; ')})`
  return [`  ${flag === 'v' ? '-v, ' : ''}--${flag}${value}${note}`, ...wrapped(meaning)]
}

/** Which clouds read the flag; empty if all do. */
function cloudNote({ only, except }: AutoscalerFlag): string {
  if (only !== undefined) return `only ${only.cloud}`
  return except === undefined ? '' : `not ${except.cloud}`
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
    '',
    'A flag that begins with `only CLOUD` works with this `--cloud-provider`; with others it is accepted, and a warning says that it has no effect (`--cloud-config`: without one). `not CLOUD` is the reverse.',
    ...flagGroups.flatMap(({ title, flags }) => [
      '',
      `## ${title}`,
      '',
      '| flag | kind | default | class | meaning |',
      '|---|---|---|---|---|',
      ...flags.map((definition) => {
        const { flag, kind, fallback, class: flagClass, meaning } = definition
        const note = cloudNote(definition)
        const shown = flag === 'v' ? '`-v`, `--v`' : `\`--${flag}\``
        const initial = fallback === '' ? '' : `\`${fallback}\``
        return `| ${shown} | ${kind} | ${initial} | ${flagClass} | ${note === '' ? '' : `${note}: `}${meaning} |`
      }),
    ]),
  ].join('\n')}\n`
}
