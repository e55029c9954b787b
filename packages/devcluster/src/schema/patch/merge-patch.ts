import type { StoredObject } from '../../contract.ts'
import { isRecord } from '../shape-node.ts'

/** JSON merge patch (RFC 7386): null deletes, objects merge, everything else replaces. */
export function mergePatch(object: StoredObject, patch: unknown): StoredObject {
  return mergeValue(object, patch) as StoredObject
}

function mergeValue(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]
    else merged[key] = mergeValue(merged[key], value)
  }
  return merged
}
