import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { quantityNanos } from '../quantity.ts'
import { type Findings, listOf } from './reporting.ts'

/** Which amounts of an item may not be above which others, the field to blame, and their names. */
const order = [
  ['min', 'max', 'min', 'min value', 'max value'],
  ['min', 'defaultRequest', 'defaultRequest', 'min value', 'default request value'],
  ['defaultRequest', 'max', 'defaultRequest', 'default request value', 'max value'],
  ['min', 'default', 'default', 'min value', 'default value'],
  ['default', 'max', 'default', 'default value', 'max value'],
  ['defaultRequest', 'default', 'defaultRequest', 'default request value', 'default limit value'],
] as const

/** Bounds and defaults that no container could keep to are refused. */
export function checkLimitRange(object: StoredObject, _old: StoredObject | undefined, found: Findings): void {
  const spec: Loose = object['spec'] ?? {}
  for (const [index, limit] of listOf(spec, 'limits').entries()) {
    const path = `spec.limits[${index}]`
    for (const field of ['default', 'defaultRequest']) {
      if (limit['type'] === 'Pod' && ownValue(limit, field) !== undefined)
        found.forbidden(`${path}.${field}`, "may not be specified when `type` is 'Pod'")
    }
    for (const [low, high, blamed, lowName, highName] of order) {
      for (const [name, amount] of Object.entries((limit[low] ?? {}) as Record<string, unknown>)) {
        const bounds = (limit[high] ?? {}) as Record<string, unknown>
        if (!Object.hasOwn(bounds, name)) continue
        const bound = ownValue(bounds, name)
        const [below, above] = [quantityNanos(String(amount)), quantityNanos(String(bound))]
        if (below === undefined || above === undefined || below <= above) continue
        const detail = `${lowName} ${String(amount)} is greater than ${highName} ${String(bound)}`
        found.invalid(`${path}.${blamed}[${name}]`, amount, detail)
      }
    }
  }
}
