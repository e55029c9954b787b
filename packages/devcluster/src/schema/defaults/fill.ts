import { ownValue, setOwn } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'

/** The record with `defaults` for absent fields; the same record if none was absent. */
export function fill(record: Loose, defaults: Loose): Loose {
  let filled: Record<string, unknown> | undefined
  for (const key in defaults) {
    if (ownValue(record, key) !== undefined) continue
    filled ??= { ...record }
    setOwn(filled, key, ownValue(defaults, key))
  }
  return filled ?? record
}

/** Like {@link fill}, also for fields whose zero value means unset. */
export function fillZero(record: Loose, defaults: Loose): Loose {
  const isUnset = (value: unknown): boolean => value === undefined || value === '' || value === 0
  const unset = Object.entries(defaults).filter(([key]) => isUnset(ownValue(record, key)))
  return unset.length === 0 ? record : { ...record, ...Object.fromEntries(unset) }
}

/** The record with one field set; the same record if it has that value. */
export function set(record: Loose, key: string, value: unknown): Loose {
  return ownValue(record, key) === value ? record : { ...record, [key]: value }
}

/** Replaces an existing field by the result of `change`. */
export function within(record: Loose, key: string, change: (value: Loose) => Loose): Loose {
  const value = ownValue(record, key)
  return typeof value === 'object' && value !== null ? set(record, key, change(value)) : record
}

/** Like {@link within}, but an absent field counts as an empty struct. */
export function withinOrEmpty(record: Loose, key: string, change: (value: Loose) => Loose): Loose {
  return set(record, key, change(ownValue(record, key) ?? {}))
}

/** Replaces each item of an existing list; the same record if no item changed. */
export function each(record: Loose, key: string, change: (item: Loose) => Loose): Loose {
  const list: unknown = ownValue(record, key)
  if (!Array.isArray(list)) return record
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item: unknown = list[index]
    if (typeof item !== 'object' || item === null) continue
    const next = change(item)
    if (next === item) continue
    changed ??= [...list]
    changed[index] = next
  }
  return changed === undefined ? record : { ...record, [key]: changed }
}
