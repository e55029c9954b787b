/** Sums of amounts of devices. */
import type { DeviceAmount, DeviceAmounts } from '@tenon/api'

/** Adds `more`, in place. */
export function addAmounts(to: Map<string, DeviceAmount>, more: DeviceAmounts): void {
  for (const [name, amount] of more) to.set(name, (to.get(name) ?? 0n) + amount)
}

/** Takes `less` away, in place. */
export function subtractAmounts(from: Map<string, DeviceAmount>, less: DeviceAmounts): void {
  for (const [name, amount] of less) from.set(name, (from.get(name) ?? 0n) - amount)
}

/** Raises each amount to that of `other`, in place. */
export function raiseAmounts(to: Map<string, DeviceAmount>, other: DeviceAmounts): void {
  for (const [name, amount] of other) if (amount > (to.get(name) ?? 0n)) to.set(name, amount)
}
