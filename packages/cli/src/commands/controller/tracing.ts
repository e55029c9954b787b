/** Traces of a process, if its environment asks for them (adoption.md 4). */
import type { Clock, Logger, Random, Tracer } from '@tenon/runtime'
import { tracingSettings } from './tracing-settings.ts'

/** An open connection to a receiver. */
export interface Tracing {
  readonly tracer: Tracer
  /** Sends what is left. Resolves within two seconds, whatever the receiver does. */
  close(): Promise<void>
}

export interface TracingRuntime {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/**
 * Without an endpoint, OpenTelemetry is not even loaded. Never throws: what cannot be used is logged.
 * @param serviceName name of this program in traces.
 * @param instance name of this process in traces.
 */
export async function openTracing(
  env: Readonly<Record<string, string | undefined>>,
  { serviceName, instance }: { readonly serviceName: string; readonly instance: string },
  runtime: TracingRuntime,
): Promise<Tracing | undefined> {
  const { settings, problems } = tracingSettings(env, serviceName)
  for (const problem of problems) runtime.logger.warn('tracing is not set as asked', { problem })
  if (settings === undefined) return undefined
  try {
    const { openTelemetry } = await import('./opentelemetry.ts')
    return openTelemetry(settings, instance, runtime)
  } catch (error) {
    runtime.logger.error('nothing is traced: the exporter cannot be opened', { error })
    return undefined
  }
}
