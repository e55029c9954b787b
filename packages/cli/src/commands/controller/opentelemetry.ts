/** Sends spans to a receiver of OTLP over HTTP. Only loaded if traces are wanted. */
import {
  type HrTime,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
} from '@opentelemetry/api'
import { ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import { type Clock, createTracer, type FinishedSpan, type Logger, type TraceContext } from '@tenon/runtime'
import { version } from '../../version.ts'
import type { Tracing, TracingRuntime } from './tracing.ts'
import type { TracingSettings } from './tracing-settings.ts'

/** While a receiver does not answer, it is tried this often; spans are dropped meanwhile. */
const pauseMs = 30_000
const closeMs = 2000

/** @throws Error if OpenTelemetry refuses the settings. */
export function openTelemetry(
  settings: TracingSettings,
  instance: string,
  { clock, random, logger }: TracingRuntime,
): Tracing {
  const resource = defaultResource().merge(
    resourceFromAttributes({
      'service.version': version,
      'service.instance.id': instance,
      ...settings.attributes,
    }),
  )
  const { protocol, timeoutMs } = settings
  const Exporter = protocol === 'http/json' ? JsonExporter : ProtobufExporter
  const exporter = new Exporter({
    url: settings.url,
    headers: { ...settings.headers },
    timeoutMillis: timeoutMs,
  })
  const processor = new BatchSpanProcessor({
    exporter: reportingExporter(exporter, settings.url, { clock, logger }),
    scheduledDelayMillis: settings.delayMs,
    exportTimeoutMillis: timeoutMs + 1000,
  })
  const sampler = samplerOf(settings)
  const tracer = createTracer({
    clock,
    random: random.fork('traces'),
    isSampled: (traceId) =>
      sampler.shouldSample(ROOT_CONTEXT, traceId, '', SpanKind.INTERNAL, {}, []).decision ===
      SamplingDecision.RECORD_AND_SAMPLED,
    onEnd: (span) => {
      processor.onEnd(readableSpan(span, resource))
    },
  })
  return {
    tracer,
    close: async () => {
      const ending = new AbortController()
      const late = clock.sleep(closeMs, ending.signal).catch(() => undefined)
      await Promise.race([processor.shutdown().catch(() => undefined), late])
      ending.abort()
    },
  }
}

function samplerOf({ sampler }: TracingSettings): Sampler {
  if (sampler === 'all') return new AlwaysOnSampler()
  return sampler === 'none' ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(sampler.ratio)
}

/** Logs once that the receiver fails, and once that it answers again; while it fails, it is mostly left alone. */
function reportingExporter(
  exporter: SpanExporter,
  url: string,
  { clock, logger }: { readonly clock: Pick<Clock, 'monotonic'>; readonly logger: Logger },
): SpanExporter {
  const { origin, pathname } = new URL(url)
  const receiver = origin + pathname
  let quietUntilMs: number | undefined
  return {
    export: (spans, done) => {
      if (quietUntilMs !== undefined && clock.monotonic() < quietUntilMs) {
        done({ code: ExportResultCode.FAILED })
        return
      }
      exporter.export(spans, (result) => {
        if (result.code === ExportResultCode.FAILED) {
          if (quietUntilMs === undefined)
            logger.warn('traces are not received; they are dropped until they are', {
              receiver,
              error: result.error?.message || 'no answer',
            })
          quietUntilMs = clock.monotonic() + pauseMs
        } else if (quietUntilMs !== undefined) {
          quietUntilMs = undefined
          logger.info('traces are received again', { receiver })
        }
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}

const scope = { name: 'tenon', version }

function readableSpan(span: FinishedSpan, resource: Resource): ReadableSpan {
  const { name, context, parent, startMs, endMs, attributes, links, error } = span
  const spanContext = contextOf(context)
  return {
    name,
    kind: span.kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL,
    spanContext: () => spanContext,
    ...(parent && { parentSpanContext: contextOf(parent) }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status:
      error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: {
      ...(attributes as ReadableSpan['attributes']),
      ...(error !== undefined && { 'error.type': error }),
    },
    links: links.map((each): Link => ({ context: contextOf(each) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

function contextOf({ traceId, spanId, isSampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? 1 : 0 }
}

function hrTime(ms: number): HrTime {
  const microseconds = Math.round(ms * 1000)
  const seconds = Math.floor(microseconds / 1e6)
  return [seconds, (microseconds - seconds * 1e6) * 1000]
}
