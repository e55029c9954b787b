/** Arithmetic on device capacity and counters, in place. */
import type { DeviceAmount, DeviceAmounts } from '@tenon/api'

export function addAmounts(to: Map<string, DeviceAmount>, more: DeviceAmounts): void {
  for (const [name, amount] of more) to.set(name, (to.get(name) ?? 0n) + amount)
}

export function subtractAmounts(from: Map<string, DeviceAmount>, less: DeviceAmounts): void {
  for (const [name, amount] of less) from.set(name, (from.get(name) ?? 0n) - amount)
}

/** Raises each amount to that of `other` where that is larger. */
export function raiseAmounts(to: Map<string, DeviceAmount>, other: DeviceAmounts): void {
  for (const [name, amount] of other) if (amount > (to.get(name) ?? 0n)) to.set(name, amount)
}
