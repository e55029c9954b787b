/** Amounts of devices, and how much of a device's capacity a request consumes (devices.md 3.14). */
import type { CapacityRequestPolicy, DeviceCapacity } from './devices.ts'
import { scaledQuantity } from './quantity.ts'

/** In thousandths; smaller fractions are rounded up. */
export type DeviceAmount = bigint

/** @throws RangeError if the text is not a quantity. */
export function deviceAmount(text: string): DeviceAmount {
  return scaledQuantity(text, 3)
}

/** Amounts by name; a missing name is 0. */
export type DeviceAmounts = ReadonlyMap<string, DeviceAmount>

/** A capacity with its request policy. */
export interface CompiledCapacity {
  readonly value: DeviceAmount
  readonly policy: CompiledPolicy | undefined
}

interface CompiledPolicy {
  readonly default: DeviceAmount | undefined
  readonly values: readonly DeviceAmount[] | undefined
  readonly range:
    | {
        readonly min: DeviceAmount
        readonly max: DeviceAmount | undefined
        readonly step: DeviceAmount | undefined
      }
    | undefined
}

/** @throws RangeError if an amount is not a quantity. */
export function compileCapacity({ value, requestPolicy }: DeviceCapacity): CompiledCapacity {
  return { value: deviceAmount(value), policy: compilePolicy(requestPolicy) }
}

function compilePolicy(policy: CapacityRequestPolicy | undefined): CompiledPolicy | undefined {
  if (policy === undefined) return undefined
  const { default: usual, validRange: range, validValues: values } = policy
  return {
    default: usual === undefined ? undefined : deviceAmount(usual),
    values: values?.map(deviceAmount),
    range: range && {
      min: deviceAmount(range.min),
      max: range.max === undefined ? undefined : deviceAmount(range.max),
      step: range.step === undefined ? undefined : deviceAmount(range.step),
    },
  }
}

/** How much the requests consume of each capacity, or undefined if the device cannot satisfy them. */
export function consumedCapacity(
  capacity: ReadonlyMap<string, CompiledCapacity>,
  requests: DeviceAmounts,
): DeviceAmounts | undefined {
  for (const name of requests.keys()) if (!capacity.has(name)) return undefined
  const consumed = new Map<string, DeviceAmount>()
  for (const [name, { value, policy }] of capacity) {
    const requested = requests.get(name)
    const amount = requested === undefined ? (policy?.default ?? value) : rounded(requested, policy)
    if (amount === undefined || amount > value) return undefined
    consumed.set(name, amount)
  }
  return consumed
}

/** The amount that the policy grants for a request, or undefined if it allows none. */
function rounded(requested: DeviceAmount, policy: CompiledPolicy | undefined): DeviceAmount | undefined {
  if (policy === undefined || requested === policy.default) return requested
  const { values, range } = policy
  if (values !== undefined) return values.find((value) => value >= requested)
  if (range === undefined) return requested
  const { min, max, step } = range
  let amount = requested < min ? min : requested
  if (step !== undefined && step > 0n) {
    const steps = (amount - min + step - 1n) / step
    amount = min + steps * step
  }
  return max !== undefined && amount > max ? undefined : amount
}

/** The name of an attribute or capacity with its domain, which defaults to the driver. */
export function qualifiedDeviceName(name: string, driver: string): string {
  return name.includes('/') ? name : `${driver}/${name}`
}
