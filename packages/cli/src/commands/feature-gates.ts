/** `--feature-gates`: behaviour that can be switched on and off (operations.md 3). */
import { defaultSettings, type Settings } from '@tenon/operator'
import { CliError } from '../errors.ts'

const words: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

/**
 * The gates of `Name=bool,…`; those that are not named keep their defaults, names that nobody knows are
 * passed over. PlannedPlacement takes `auto` as well.
 * @param source the flag or variable, for the message.
 * @throws CliError naming the item that cannot be read.
 */
export function featureGates(source: string, text: string): Settings['featureGates'] {
  const gates: Record<string, Settings['featureGates'][keyof Settings['featureGates']]> = {
    ...defaultSettings.featureGates,
  }
  for (const item of text.split(',')) {
    if (item === '') continue
    const [name = '', ...rest] = item.split('=')
    const key = keyOf(name.trim())
    const word = rest.join('=').trim()
    const isOn = word === 'auto' && key === 'plannedPlacement' ? word : words.get(word)
    if (rest.length === 0 || isOn === undefined)
      throw new CliError(`${source}: "${item}": give NAME=true or NAME=false, such as NodeOverlay=true`)
    if (key !== undefined) gates[key] = isOn
  }
  return gates as unknown as Settings['featureGates']
}

/** The setting of a gate: its name without the capital. */
function keyOf(name: string): string | undefined {
  const key = name.slice(0, 1).toLowerCase() + name.slice(1)
  return key !== name && Object.hasOwn(defaultSettings.featureGates, key) ? key : undefined
}
