import { ownValue, quantityNanos } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'

/** Which amounts of an item must not exceed which others, the reported field, and their names. */
const order = [
  ['min', 'max', 'min', 'min value', 'max value'],
  ['min', 'defaultRequest', 'defaultRequest', 'min value', 'default request value'],
  ['defaultRequest', 'max', 'defaultRequest', 'default request value', 'max value'],
  ['min', 'default', 'default', 'min value', 'default value'],
  ['default', 'max', 'default', 'default value', 'max value'],
  ['defaultRequest', 'default', 'defaultRequest', 'default request value', 'default limit value'],
] as const

/** Refuses bounds and defaults that no container could meet. */
export function checkLimitRange(object: StoredObject, _old: StoredObject | undefined, found: Findings): void {
  const spec: Loose = object['spec'] ?? {}
  for (const [index, limit] of listOf(spec, 'limits').entries()) {
    const path = `spec.limits[${index}]`
    checkType(limit, listOf(spec, 'limits').slice(0, index), path, found)
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

const standardTypes: ReadonlySet<string> = new Set(['Container', 'PersistentVolumeClaim', 'Pod'])
const computeNames = ['cpu', 'memory', 'ephemeral-storage']
const fields = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio']

/** Each type may occur once, and limits certain resources. */
function checkType(limit: Loose, before: readonly Loose[], path: string, found: Findings): void {
  const type = String(limit['type'] ?? '')
  for (const words of qualifiedNameErrors(type)) found.invalid(`${path}.type`, type, words)
  if (!type.includes('/') && !standardTypes.has(type)) {
    found.invalid(`${path}.type`, type, 'must be a standard limit type or fully qualified')
  }
  if (before.some((other) => other['type'] === limit['type'])) found.duplicate(`${path}.type`, type)
  if (type === 'PersistentVolumeClaim') {
    const bounds = ['min', 'max'].some((field) => Object.hasOwn(ownValue(limit, field) ?? {}, 'storage'))
    if (!bounds) {
      const words = 'either minimum or maximum storage value is required, but neither was provided'
      found.required(`${path}.limits`, words)
    }
  }
  for (const field of fields) {
    for (const name of Object.keys((ownValue(limit, field) ?? {}) as Loose)) {
      checkName(type, name, `${path}.${field}[${name}]`, found)
    }
  }
  for (const [name, ratio] of Object.entries((limit['maxLimitRequestRatio'] ?? {}) as Loose)) {
    checkRatio(limit, name, String(ratio), `${path}.maxLimitRequestRatio[${name}]`, found)
  }
}

function checkName(type: string, name: string, path: string, found: Findings): void {
  for (const words of qualifiedNameErrors(name)) found.invalid(path, name, words)
  if (name.includes('/')) return
  if (type === 'Pod' || type === 'Container') {
    if (!computeNames.includes(name) && !name.startsWith('hugepages-')) {
      found.invalid(path, name, 'must be a standard resource for containers')
    }
  } else if (![...computeNames, 'storage', 'pods'].includes(name) && !name.startsWith('hugepages-')) {
    found.invalid(path, name, 'must be a standard resource type or fully qualified')
  }
}

function checkRatio(limit: Loose, name: string, ratio: string, path: string, found: Findings): void {
  const nanos = quantityNanos(ratio)
  if (nanos === undefined) return
  if (nanos < 1_000_000_000n) found.invalid(path, ratio, `ratio ${ratio} is less than 1`)
  const [low, high] = ['min', 'max'].map((field) =>
    quantityNanos(String(ownValue(ownValue(limit, field) as Loose | undefined, name) ?? '')),
  )
  if (low === undefined || high === undefined || low === 0n) return
  const most = Number(high) / Number(low)
  if (Number(nanos) / 1e9 > most)
    found.invalid(path, ratio, `ratio ${ratio} is greater than max/min = ${most}`)
}
