import { isRecord } from '@tenon/api'
import { applyPatch, type Operation } from 'rfc6902'
import type { StoredObject } from '../../contract.ts'
import type { PatchResult } from './strategic-merge-patch.ts'

const maxOperations = 10_000

/** JSON patch (RFC 6902). All operations succeed, `test` included, or the error names the failed one. */
export function jsonPatch(object: StoredObject, operations: unknown): PatchResult {
  const refused = malformed(operations)
  if (refused !== undefined) return { error: refused }
  const list: readonly Operation[] = operations as Operation[]
  const patched: { root: unknown } = { root: structuredClone(object) }
  // The library changes its target in place and cannot replace the root, so the object is wrapped.
  for (const operation of list) {
    const error = applyOne(patched, operation)
    if (error !== undefined) return { error }
  }
  if (!isRecord(patched.root)) return { error: 'the patched document is not an object' }
  return { object: patched.root as StoredObject }
}

function malformed(operations: unknown): string | undefined {
  if (!Array.isArray(operations)) return 'a JSON patch must be a list of operations'
  if (operations.length > maxOperations) {
    return `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${operations.length}`
  }
  const known = new Set<unknown>(['add', 'remove', 'replace', 'move', 'copy', 'test'])
  for (const operation of operations) {
    if (!isRecord(operation) || !known.has(operation['op'])) {
      return `Unexpected kind: ${isRecord(operation) ? String(operation['op']) : typeof operation}`
    }
    if (
      typeof operation['path'] !== 'string' ||
      (operation['path'] !== '' && !operation['path'].startsWith('/'))
    ) {
      return `operation ${String(operation['op'])} has no valid path`
    }
  }
  return undefined
}

function applyOne(document: { root: unknown }, operation: Operation): string | undefined {
  const moved: Operation = { ...operation, path: `/root${operation.path}` }
  if ('from' in moved) moved.from = `/root${moved.from}`
  let failure: Error | null | undefined
  try {
    failure = applyPatch(document, [moved])[0]
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error))
  }
  if (failure === null || failure === undefined) return undefined
  if (failure.name === 'TestError' && isNullWhereNothingIs(operation, failure)) return undefined
  if (failure.name === 'TestError') return `testing value ${operation.path} failed: test failed`
  return `${operation.op} operation does not apply: doc is missing path: ${operation.path}: missing value`
}

/** For the API server, a missing value equals null. */
function isNullWhereNothingIs(operation: Operation, failure: Error): boolean {
  const { actual } = failure as { readonly actual?: unknown }
  return operation.op === 'test' && operation.value === null && actual === undefined
}
