/** Which taints rules add to devices, and who tolerates them (devices.md 3.21). */
import type { DeviceTaint, DeviceTaintRule, DeviceToleration } from './devices.ts'

/** A device as rules select it. */
export interface TaintedDevice {
  readonly driver: string
  /** Undefined for one that is still to be published: nobody can name its pool yet. */
  readonly pool: string | undefined
  readonly device: string
}

/** Whether a rule taints a device. */
export function selectsDevice({ spec }: DeviceTaintRule, { driver, pool, device }: TaintedDevice): boolean {
  const { deviceSelector: selector } = spec
  if (selector === undefined) return false
  return (
    (selector.driver ?? driver) === driver &&
    (selector.pool ?? pool) === pool &&
    (selector.device ?? device) === device
  )
}

/** The taints that rules add to a device, in the order of the rules' names. */
export function taintsOfRules(
  rules: readonly DeviceTaintRule[],
  device: TaintedDevice,
): readonly DeviceTaint[] {
  if (rules.length === 0) return []
  return rules
    .filter((rule) => selectsDevice(rule, device))
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map(({ spec }) => spec.taint)
}

/** Whether one of the tolerations tolerates a taint of a device; one without a key tolerates all keys. */
export function toleratesDeviceTaint(
  tolerations: readonly DeviceToleration[],
  { key, value = '', effect }: DeviceTaint,
): boolean {
  return tolerations.some((toleration) => {
    const of: { readonly effect?: string; readonly key?: string } = toleration
    return (
      ['', effect].includes(of.effect ?? '') &&
      ['', key].includes(of.key ?? '') &&
      (toleration.operator === 'Exists' || (toleration.value ?? '') === value)
    )
  })
}
