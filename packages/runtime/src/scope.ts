/** What everything shares that one operation does: fields of its log lines, and its span. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { LogFields } from './log.ts'

/** A span as other spans, log lines and events refer to it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  /** Whether the trace is sent anywhere. */
  readonly isSampled: boolean
}

interface Scope {
  readonly fields?: () => LogFields
  readonly trace?: { readonly context: TraceContext; isOver: boolean }
}

const scopes = new AsyncLocalStorage<Scope>()

/**
 * Runs `work`. Every line that it or its asynchronous continuations write through a logger has the fields. The innermost
 * scope wins, and it belongs to no span of the scopes around it.
 * @param fields is called for each line.
 */
export function inLogScope<T>(fields: () => LogFields, work: () => T): T {
  return scopes.run({ fields }, work)
}

/** Runs `work` as part of a span; undefined changes nothing, not even the order of promises. */
export function inTrace<T>(context: TraceContext | undefined, work: () => Promise<T>): Promise<T> {
  return context === undefined ? work() : inOpenTrace(context, work)
}

async function inOpenTrace<T>(context: TraceContext, work: () => Promise<T>): Promise<T> {
  const trace = { context, isOver: false }
  try {
    return await scopes.run({ ...scopes.getStore(), trace }, work)
  } finally {
    trace.isOver = true
  }
}

/** The span that the caller belongs to. Undefined outside of spans, and for work that outlives the span it began in. */
export function currentTrace(): TraceContext | undefined {
  const trace = scopes.getStore()?.trace
  return trace?.isOver === false ? trace.context : undefined
}

/** The fields of the current log scope. */
export function scopeFields(): LogFields {
  return scopes.getStore()?.fields?.() ?? {}
}

/** The ids of the current span as fields of log lines; none outside of spans that are sent. */
export function traceFields(): LogFields {
  const context = currentTrace()
  return context?.isSampled !== true ? {} : { trace_id: context.traceId, span_id: context.spanId }
}
