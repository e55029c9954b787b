/** Fields that all log lines of one operation share. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { LogFields } from './log.ts'

const scopes = new AsyncLocalStorage<() => LogFields>()

/**
 * Runs `work`. Every line that it or its asynchronous continuations write through a {@link JsonLogger} has the
 * fields. The innermost scope wins.
 * @param fields is called for each line.
 */
export function inLogScope<T>(fields: () => LogFields, work: () => T): T {
  return scopes.run(fields, work)
}

/** The fields of the current scope; none outside of one. */
export function scopeFields(): LogFields {
  return scopes.getStore()?.() ?? {}
}
