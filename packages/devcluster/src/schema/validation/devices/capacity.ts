/** Request policies of shared device capacity. */
import { ownValue, quantityNanos } from '@tenon/api'
import type { Loose } from '../../columns/cells.ts'
import type { Findings } from '../reporting.ts'
import { checkOnce } from './parts.ts'

const mostValues = 10
const nano = 1_000_000_000n

/** Validates the policy of a capacity, whose quantities are valid. */
export function checkCapacity(capacity: Loose, path: string, found: Findings): void {
  const policy = capacity['requestPolicy'] as Loose | undefined
  if (policy === undefined) return
  const { validValues, validRange } = policy
  const values: readonly unknown[] = Array.isArray(validValues) ? validValues : []
  if (values.length > 0 && validRange !== undefined)
    return found.forbidden(
      path,
      'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time',
    )
  const given = values.length > 0 ? 'validValues' : validRange === undefined ? undefined : 'validRange'
  if (given === undefined) return
  if (policy['default'] === undefined)
    return found.required(`${path}.default`, `required when ${given} is defined`)
  const bounds = { whole: amountOf(capacity['value']), usual: amountOf(policy['default']) }
  if (given === 'validValues') checkValues(values, bounds, `${path}.validValues`, found)
  else checkRange(validRange as Loose, bounds, `${path}.validRange`, found)
}

/** In billionths. */
interface Bounds {
  /** The whole capacity. */
  readonly whole: bigint
  /** The amount of a request without one. */
  readonly usual: bigint
}

function amountOf(value: unknown): bigint {
  return quantityNanos(String(value)) ?? 0n
}

/** Whole units, rounded up, as the API server compares amounts with steps. */
function wholeUnits(amount: bigint): bigint {
  return (amount + nano - 1n) / nano
}

function checkValues(
  values: readonly unknown[],
  { whole, usual }: Bounds,
  path: string,
  found: Findings,
): void {
  const amounts = values.map(amountOf)
  for (const [index, amount] of amounts.entries())
    if (index > 0 && (amounts[index - 1] ?? 0n) > amount)
      found.invalid(`${path}[${index}]`, values[index], 'values must be sorted in ascending order')
  if (values.length > mostValues) found.tooMany(path, values.length, mostValues)
  else {
    for (const [index, amount] of amounts.entries())
      if (amount > whole)
        found.invalid(`${path}[${index}]`, values[index], 'option is larger than capacity value')
    checkOnce(amounts.map(wholeUnits).map(String), path, found)
  }
  if (values.length > mostValues || !amounts.includes(usual))
    found.invalid(path, values, 'default value is not valid according to the requestPolicy')
}

function checkRange(range: Loose, { whole, usual }: Bounds, path: string, found: Findings): void {
  if (range['min'] === undefined) return found.required(`${path}.min`, 'required when validRange is defined')
  const least = amountOf(range['min'])
  const most = range['max'] === undefined ? undefined : amountOf(range['max'])
  const tell = (field: string, words: string) =>
    found.invalid(`${path}.${field}`, ownValue(range, field), words)
  if (least > whole) tell('min', 'min is larger than capacity value')
  if (usual < least) tell('min', 'default is less than min')
  if (most !== undefined) {
    if (least > most) tell('max', 'min is larger than max')
    if (most > whole) tell('max', 'max is larger than capacity value')
    if (usual > most) tell('max', 'default is more than max')
  }
  if (range['step'] === undefined) return
  const step = amountOf(range['step'])
  if (least + step > whole) tell('step', 'one step is larger than capacity value')
  for (const amount of most === undefined ? [usual] : [usual, most])
    if (step > 0n && (wholeUnits(amount) - wholeUnits(least)) % wholeUnits(step) !== 0n)
      tell('step', 'value is not a multiple of a given step')
}
