/** `--feature-gates` (operations.md 3). */
import { nearest, setOwn } from '@tenon/api'
import { booleanWords } from '@tenon/api/flags'
import { defaultSettings, type Settings } from '@tenon/operator/objects'
import { CliError, startUpExitCode } from '../errors.ts'
import { gateDefinitions } from './definitions.ts'
import type { OptionWarning } from './read.ts'

type FeatureGates = Settings['featureGates']

/** A parsed list of gates. */
export interface ReadGates {
  readonly gates: FeatureGates
  /** Gates of Tenon only that the list enables. */
  readonly own: readonly string[]
  /** All gates of the list. */
  readonly named: ReadonlySet<string>
  readonly warnings: readonly OptionWarning[]
}

/**
 * Parses `Name=bool,…`. Gates that are not named keep their defaults; unknown names are ignored.
 * PlannedPlacement accepts `auto` too.
 * @param source flag or variable, for messages.
 * @throws CliError naming the invalid item.
 */
export function featureGates(source: string, text: string): ReadGates {
  const gates: Record<string, boolean | 'auto'> = { ...defaultSettings.featureGates }
  const warnings: OptionWarning[] = []
  const own = new Set<string>()
  const named = new Set<string>()
  for (const item of text.split(',')) {
    if (item === '') continue
    const [first = '', ...rest] = item.split('=')
    const name = first.trim()
    const word = rest.join('=').trim()
    const definition = gateDefinitions.find((each) => each.name === name)
    const isOn = word === 'auto' && definition?.fallback === 'auto' ? word : booleanWords.get(word)
    if (rest.length === 0 || isOn === undefined) {
      throw new CliError(`${source}: "${item}": give NAME=true or NAME=false, such as NodeOverlay=true`, {
        exitCode: startUpExitCode,
      })
    }
    if (definition === undefined) warnings.push(unknownGate(source, name))
    else setOwn(gates, settingOf(name), isOn)
    named.add(name)
    if (definition?.isOwn !== true) continue
    if (isOn === true) own.add(name)
    else own.delete(name)
  }
  return { gates: gates as unknown as FeatureGates, own: [...own], named, warnings }
}

/** Disables Tenon's own gates, and gives the others Karpenter's defaults unless they are named. */
export function karpenterGates({ gates, named }: Pick<ReadGates, 'gates' | 'named'>): FeatureGates {
  const changed = gateDefinitions.flatMap(({ isOwn, karpenterFallback, name }) => {
    if (isOwn === true) return [[settingOf(name), false] as const]
    if (karpenterFallback === undefined || named.has(name)) return []
    return [[settingOf(name), karpenterFallback] as const]
  })
  return { ...gates, ...Object.fromEntries(changed) }
}

function unknownGate(source: string, gate: string): OptionWarning {
  const names = gateDefinitions.map(({ name }) => name)
  const near = nearest(gate, names)
  const fix = near === undefined ? `there are ${names.join(', ')}` : `did you mean ${near}?`
  return { message: 'ignoring an unknown feature gate', fields: { option: source, gate, fix } }
}

/** The setting of a gate: its name in camel case. */
function settingOf(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1)
}
