/** From arguments to options, with warnings and fatal errors. */
import { autoscalerOptions } from './autoscaler-options.ts'
import { fatalProblem } from './fatal-problems.ts'
import { isRead } from './flag.ts'
import { allFlags } from './flag-groups.ts'
import { type FlagValues, parseFlags } from './flag-values.ts'
import type { AutoscalerOptions } from './options.ts'
import type { ProcessOptions } from './process-options.ts'
import { cloudOf, processOptions } from './read-process-options.ts'

/** The parsed command line. */
export type OptionsAsked =
  | { readonly kind: 'help' }
  /** It cannot be parsed: a message with a hint at the help, and exit code 2. */
  | { readonly kind: 'usage'; readonly message: string }
  /** It is parsed but invalid: a message and exit code 1. */
  | { readonly kind: 'fatal'; readonly message: string }
  | {
      readonly kind: 'options'
      readonly autoscaler: AutoscalerOptions
      readonly process: ProcessOptions
      /** Each is logged once. */
      readonly warnings: readonly string[]
    }

/**
 * Parses the arguments after the program name.
 * @param clouds names of clouds with scalable groups; the first is the default.
 */
export function readOptions(args: readonly string[], clouds: readonly string[]): OptionsAsked {
  const parsed = parseFlags(args, allFlags)
  if (parsed.kind !== 'values') return parsed
  const { values } = parsed
  const problem = fatalProblem(values, clouds)
  if (problem !== undefined) return { kind: 'fatal', message: problem }
  return {
    kind: 'options',
    autoscaler: autoscalerOptions(values),
    process: processOptions(values, clouds),
    warnings: warningsOf(values, clouds),
  }
}

function warningsOf(values: FlagValues, clouds: readonly string[]): readonly string[] {
  const cloud = cloudOf(values, clouds)
  const idle = allFlags.filter(
    ({ flag, class: flagClass, warns = 'given', fallback }) =>
      flagClass === 'W' &&
      values.isGiven(flag) &&
      (warns === 'given' || values.isOn(flag) !== (fallback === 'true')),
  )
  const unread = allFlags.filter(
    (flag) => values.isGiven(flag.flag) && !isRead(flag, cloud) && flag.only?.elsewhere !== 'quiet',
  )
  return [
    ...idle.map(({ flag, meaning }) => `--${flag} has no effect: ${meaning}`),
    ...unread.map(({ flag, only, except }) => {
      const why = except?.reason ?? `only ${only?.cloud} reads it`
      return `--${flag} has no effect with --cloud-provider=${cloud}: ${why}`
    }),
    ...oddities(values),
  ]
}

function oddities(values: FlagValues): readonly string[] {
  const startupMs = values.durationMs('max-startup-time')
  const longest = Math.max(values.durationMs('max-inactivity'), values.durationMs('max-failing-time'))
  return [
    ...(values.isOn('scale-down-enabled')
      ? []
      : ['--scale-down-enabled is deprecated; nodes are not removed while it is false']),
    ...(values.isGiven('ignore-taint') ? ['--ignore-taint is deprecated: use --startup-taint'] : []),
    ...(values.isOn('enable-dynamic-resource-allocation')
      ? []
      : ['--enable-dynamic-resource-allocation=false has no effect: claims are looked at where they are']),
    ...(startupMs < longest
      ? [
          `--max-startup-time=${values.text('max-startup-time')} is less than --max-inactivity or --max-failing-time: the longest of them counts`,
        ]
      : []),
    ...(values.durationMs('scan-interval') < 1000
      ? [`--scan-interval=${values.text('scan-interval')} is too short: 1s counts`]
      : []),
  ]
}
