/** Which taints DeviceTaintRules add to devices, and which tolerations cover them (devices.md 3.21). */
import type { DeviceTaint, DeviceTaintRule, DeviceToleration } from './devices.ts'

/** The fields of a device by which rules select it. */
export interface TaintedDevice {
  readonly driver: string
  /** Undefined for a device of a future node: its pool has no name yet. */
  readonly pool: string | undefined
  readonly device: string
}

export function selectsDevice({ spec }: DeviceTaintRule, { driver, pool, device }: TaintedDevice): boolean {
  const { deviceSelector: selector } = spec
  if (selector === undefined) return false
  return (
    (selector.driver ?? driver) === driver &&
    (selector.pool ?? pool) === pool &&
    (selector.device ?? device) === device
  )
}

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

/** Whether one of the tolerations covers a device's taint. A toleration without a key covers all keys. */
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
