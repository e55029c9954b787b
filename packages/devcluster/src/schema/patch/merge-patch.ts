import { isRecord, ownValue, setOwn } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import { jsonEqual } from '../shape-node.ts'

/**
 * JSON merge patch (RFC 7386): null deletes, objects merge, everything else replaces. Values that the patch repeats
 * stay the same objects, so that later steps can skip them.
 */
export function mergePatch(object: StoredObject, patch: unknown): StoredObject {
  return mergeValue(object, patch) as StoredObject
}

function mergeValue(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return Array.isArray(patch) && Array.isArray(target) ? shared(target, patch) : patch
  const before: Readonly<Record<string, unknown>> = isRecord(target) ? target : {}
  let merged: Record<string, unknown> | undefined = isRecord(target) ? undefined : {}
  for (const key in patch) {
    const value = ownValue(patch, key)
    if (value === null) {
      if (!Object.hasOwn(before, key)) continue
      merged ??= { ...before }
      delete merged[key]
      continue
    }
    const next = mergeValue(ownValue(before, key), value)
    if (next === ownValue(before, key) && Object.hasOwn(before, key)) continue
    merged ??= { ...before }
    setOwn(merged, key, next)
  }
  return merged ?? target
}

/** The list of a patch, with equal items replaced by the old objects. */
function shared(old: readonly unknown[], list: readonly unknown[]): readonly unknown[] {
  const items = list.map((item, index) => (jsonEqual(item, old[index]) ? old[index] : item))
  return items.length === old.length && items.every((item, index) => item === old[index]) ? old : items
}
