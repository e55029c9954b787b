/** Generates the help of `tenon controller` and docs/options.md from the definitions. */
import { wrapped } from '@tenon/api/flags'
import type { ProviderModule } from '@tenon/provider'
import {
  gateDefinitions,
  type OptionDefinition,
  optionDefinitionsOf,
  retiredOptions,
  unreadVariables,
} from './definitions.ts'

export function controllerHelp(providers: readonly ProviderModule[]): string {
  const optionDefinitions = optionDefinitionsOf(providers)
  const names = providers.map(({ name }) => name).join(', ')
  const groups = [...new Set(optionDefinitions.map(({ group }) => group))]
  return [
    'Usage: tenon controller --provider NAME [options]',
    '',
    'Runs the autoscaler against the cluster of the kubeconfig, or of the pod it runs in. A flag overrides its',
    'environment variable, which overrides the default. Flags take one dash or two, and a value after = or a',
    'space; a boolean flag alone means true, and takes a value only after =.',
    '',
    ...wrapped(`Providers: ${names}.`, ''),
    ...groups.flatMap((group) => [
      '',
      `${group}:`,
      ...optionDefinitions.filter((each) => each.group === group).flatMap(helpLines),
    ]),
    '',
    'Feature gates:',
    ...gateDefinitions.flatMap(({ name, fallback, meaning }) => [
      `  ${name}=${fallback}`,
      ...wrapped(meaning),
    ]),
    '',
    'Examples:',
    ...providers.flatMap(({ examples }) => examples?.controller ?? []).map((line) => `  ${line}`),
    '',
  ].join('\n')
}

function helpLines(definition: OptionDefinition): readonly string[] {
  const { flag, variable, takes, fallback, kind, provider } = definition
  const value = kind === 'boolean' || kind === 'booleanOrAuto' ? `[=${takes}]` : ` ${takes}`
  const notes = [
    ...(variable === undefined ? [] : [variable]),
    ...(fallback === '' ? [] : [`default ${fallback}`]),
    ...(provider === undefined ? [] : [`provider ${provider}`]),
  ]
  const note = notes.length === 0 ? '' : `  (${notes.join(', ')})`
  return [`  --${flag}${value}${note}`, ...wrapped(meaningOf(definition))]
}

function meaningOf({ meaning, choices = [] }: OptionDefinition): string {
  const named = choices.filter((each) => each !== '')
  return named.length === 0 ? meaning : `${meaning} One of ${named.join(', ')}.`
}

export function optionsPage(providers: readonly ProviderModule[]): string {
  const optionDefinitions = optionDefinitionsOf(providers)
  const groups = [...new Set(optionDefinitions.map(({ group }) => group))]
  const code = (text: string) => (text === '' ? '' : `\`${text}\``)
  return `${[
    '# Options of `tenon controller`',
    '',
    'Generated from the definitions in `packages/cli/src/options/`; a test compares them.',
    '',
    'Options that Karpenter has keep its names and defaults; all are parsed as in Karpenter. A flag overrides its variable, which overrides the default. Flags take one dash or two, and a value after `=` or a space; a boolean flag alone means true, and takes `true` or `false` only after `=`. Integers in flags may begin with `0x`, `0o` or `0b`.',
    '',
    'An invalid number, boolean or duration in a **variable** is ignored: the default is used, and a warning in the log names the variable and the fix. Any other invalid value fails the start with exit code 2. A variable that is set but empty counts as set.',
    '',
    `Providers: ${providers.map(({ name }) => code(name)).join(', ')}; settings that exist only as variables are in the documents of the provider.`,
    ...groups.flatMap((group) => [
      '',
      `## ${group}`,
      '',
      '| flag | variable | default | meaning |',
      '|---|---|---|---|',
      ...optionDefinitions
        .filter((each) => each.group === group)
        .map((each) => {
          const provider = each.provider === undefined ? '' : ` Provider ${each.provider} only.`
          const cells = [`--${each.flag}`, each.variable ?? '', each.fallback].map(code)
          return `| ${cells.join(' | ')} | ${meaningOf(each)}${provider} |`
        }),
    ]),
    '',
    '## Feature gates',
    '',
    '`--feature-gates=NodeRepair=true,NodeOverlay=true`: gates that are not named keep their defaults, unknown ones are ignored with a warning. An item without a boolean fails the start.',
    '',
    '| gate | default | effect when on |',
    '|---|---|---|',
    ...gateDefinitions.map(
      ({ name, fallback, meaning, isOwn }) =>
        `| \`${name}\` | ${fallback} | ${meaning}${isOwn === true ? " Tenon's own: off with `--compatibility=karpenter`." : ''} |`,
    ),
    '',
    '## Removed options',
    '',
    '| flag (an error) | variable (a warning) | what to do |',
    '|---|---|---|',
    ...retiredOptions.map(({ flag, variable, advice }) => `| \`--${flag}\` | \`${variable}\` | ${advice} |`),
    '',
    `Set by Karpenter's charts and ignored: ${unreadVariables.map(code).join(', ')}.`,
    '',
    '## Exit codes',
    '',
    '| code | when |',
    '|---|---|',
    '| 0 | terminated by SIGTERM, or `--help` |',
    '| 1 | the lease was lost, or a required list made no progress for two minutes while leading |',
    '| 2 | an option, a credential or a port is invalid |',
    '| 130 | interrupted by Ctrl-C |',
    '',
    '## At run time',
    '',
    '`GET /debug/log-level` on the debug port returns the log level; `PUT` with `debug`, `info` or `error` as body changes it until the process ends:',
    '',
    '<!-- not run: needs a cluster in which the chart is installed -->',
    '```sh',
    'kubectl -n kube-system port-forward deployment/karpenter 8082 &',
    'curl -X PUT -d debug http://127.0.0.1:8082/debug/log-level',
    '```',
    '',
    'With `--enable-profiling` the debug port serves `/debug/pprof/`: `profile?seconds=N` (CPU time), `heap` and `allocs` (memory in use) in the format of `go tool pprof`, and `cmdline`. The other profiles (`goroutine`, `block`, `threadcreate`, `trace`, `symbol`) return 501.',
  ].join('\n')}\n`
}
