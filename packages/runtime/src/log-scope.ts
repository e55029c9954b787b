/** Fields that all log lines of one piece of work share. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { LogFields } from './log.ts'

const scopes = new AsyncLocalStorage<() => LogFields>()

/**
 * Does the work; every line of a {@link JsonLogger} written by it, and by what it awaits or leaves running,
 * carries the fields. Of scopes within each other the innermost counts.
 * @param fields asked when a line is written.
 */
export function inLogScope<T>(fields: () => LogFields, work: () => T): T {
  return scopes.run(fields, work)
}

/** The fields of the scope that is being worked in; none outside. */
export function scopeFields(): LogFields {
  return scopes.getStore()?.() ?? {}
}
