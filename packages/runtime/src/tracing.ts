/** Spans of operations and of the requests that they make (adoption.md 4). Who wants no traces passes no tracer. */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'
import { currentTrace, inTrace, type TraceContext } from './scope.ts'
import type { Transport } from './transport.ts'

/** Only names, numbers and kinds: messages and values of objects may hold secrets. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>

interface SpanOptions {
  /** Default: the current span. `none` begins a trace. */
  readonly parent?: TraceContext | 'none' | undefined
  readonly links?: readonly (TraceContext | undefined)[]
  /** `client`: a request to another program. Default: `internal`. */
  readonly kind?: 'internal' | 'client'
  readonly attributes?: SpanAttributes
  /** If it began earlier, by {@link Tracer.now}. */
  readonly startMs?: number
}

export interface Span {
  readonly context: TraceContext
  set(attributes: SpanAttributes): void
  /** Refers to a span of another trace. */
  link(context: TraceContext | undefined): void
  /** @param error the kind of error that it ended with, or what was thrown. */
  end(error?: unknown): void
}

/** A span that has ended. */
export interface FinishedSpan {
  readonly name: string
  readonly context: TraceContext
  /** Absent at the root of a trace. */
  readonly parent?: TraceContext
  readonly kind: 'internal' | 'client'
  /** Unix milliseconds, with fractions. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: SpanAttributes
  readonly links: readonly TraceContext[]
  /** What kind of error it ended with; absent if with none. */
  readonly error?: string
}

export interface Tracer {
  /** Unix milliseconds with fractions, by which spans begin and end. */
  now(): number
  /** Begins a span. Nobody hears of one that never ends. */
  start(name: string, options?: SpanOptions): Span
  /** Chooses the ids of a root span that {@link record} is given later, by this process or another. */
  rootContext(): TraceContext
  /** Records a span that was not followed while it lasted. */
  record(span: FinishedSpan): void
}

interface TracerOptions {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly random: Random
  /** Whether a trace of this id is sent; asked at its root. */
  readonly isSampled: (traceId: string) => boolean
  /** Receives the spans of traces that are sent. Must not throw. */
  readonly onEnd: (span: FinishedSpan) => void
}

/** The wall clock counts in milliseconds. If it differs by more than this from what is expected, it was set. */
const clockToleranceMs = 2

export function createTracer(options: TracerOptions): Tracer {
  return new SpanTracer(options)
}

class SpanTracer implements Tracer {
  readonly #options: TracerOptions
  /** What the monotonic clock lacks to Unix time. */
  #offsetMs = Number.NaN

  constructor(options: TracerOptions) {
    this.#options = options
  }

  now(): number {
    const { clock } = this.#options
    const monotonicMs = clock.monotonic()
    const wallMs = clock.now()
    const isKnown = Math.abs(wallMs - monotonicMs - this.#offsetMs) <= clockToleranceMs
    if (!isKnown) this.#offsetMs = wallMs - monotonicMs
    return monotonicMs + this.#offsetMs
  }

  rootContext(): TraceContext {
    const traceId = this.#hex(4)
    return { traceId, spanId: this.#hex(2), isSampled: this.#options.isSampled(traceId) }
  }

  start(name: string, options: SpanOptions = {}): Span {
    const { clock } = this.#options
    const [nowMs, monotonicMs] = [this.now(), clock.monotonic()]
    const { parent = currentTrace(), links = [], kind = 'internal', startMs = nowMs } = options
    const outer = parent === 'none' ? undefined : parent
    const context = outer === undefined ? this.rootContext() : { ...outer, spanId: this.#hex(2) }
    let attributes = options.attributes ?? {}
    const linked = links.filter((each) => each !== undefined)
    let hasEnded = false
    return {
      context,
      set: (more) => {
        attributes = { ...attributes, ...more }
      },
      link: (other) => {
        if (other !== undefined) linked.push(other)
      },
      end: (error) => {
        if (hasEnded) return
        hasEnded = true
        this.record({
          name,
          context,
          kind,
          startMs,
          // Whatever the wall clock was set to meanwhile.
          endMs: nowMs + clock.monotonic() - monotonicMs,
          ...(outer && { parent: outer }),
          attributes,
          links: linked,
          ...(error !== undefined && { error: errorType(error) }),
        })
      },
    }
  }

  record(span: FinishedSpan): void {
    if (span.context.isSampled) this.#options.onEnd(span)
  }

  #hex(words: number): string {
    const { random } = this.#options
    let text = ''
    for (let i = 0; i < words; i++) text += random.uint32().toString(16).padStart(8, '0')
    // Ids of zeros alone are invalid.
    return /^0+$/.test(text) ? text.replace(/.$/, '1') : text
  }
}

/** The kind of an error: its message may hold what nobody but the log is meant to see. */
function errorType(error: unknown): string {
  if (typeof error === 'string') return error
  if (!(error instanceof Error)) return 'other'
  const { kind } = error as { readonly kind?: unknown }
  return typeof kind === 'string' ? `${error.name}.${kind}` : error.name
}

/**
 * Runs `work` as a span, which ends with it.
 * @param tracer undefined: without a span.
 */
export function traced<T>(
  tracer: Tracer | undefined,
  name: string,
  options: SpanOptions,
  work: (span?: Span) => Promise<T>,
): Promise<T> {
  return tracer === undefined ? work() : asSpan(tracer, name, options, work)
}

async function asSpan<T>(
  tracer: Tracer,
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = tracer.start(name, options)
  try {
    const result = await inTrace(span.context, () => work(span))
    span.end()
    return result
  } catch (error) {
    span.end(error)
    throw error
  }
}

/**
 * Makes a span of each request that is sent within a span, up to the head of its response. Headers, queries and bodies are
 * not in it.
 * @param server URL of what answers.
 */
export function tracedTransport(
  transport: Transport,
  tracer: Tracer | undefined,
  server?: string,
): Transport {
  if (tracer === undefined) return transport
  const address = server === undefined ? {} : { 'server.address': new URL(server).hostname }
  return {
    send: async (request, signal) => {
      if (currentTrace() === undefined) return await transport.send(request, signal)
      const { method, path } = request
      const attributes = { ...address, 'http.request.method': method, 'url.path': path.split('?')[0] ?? '' }
      const span = tracer.start(requestName(method, path), { kind: 'client', attributes })
      try {
        const response = await transport.send(request, signal)
        span.set({ 'http.response.status_code': response.status })
        span.end(response.status >= 400 ? String(response.status) : undefined)
        return response
      } catch (error) {
        span.end(error)
        throw error
      }
    },
  }
}

const kubernetesPath =
  /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/(?:namespaces\/[^/]+\/(?=[^/]))?([^/]+)(?:\/[^/]+)?(\/.+)?$/
/** Parts of paths that are names of objects: names of collections have neither digits nor capitals. */
const objectName = /^(?!v\d+$)(?=.*[\dA-Z_])[^:]+/

/** `PATCH nodeclaims/status`, or `PUT /v2/instance/{id}:stop`: the same for all objects. */
function requestName(method: string, path: string): string {
  const [plain = ''] = path.split('?')
  const [, plural, subresource = ''] = kubernetesPath.exec(plain) ?? []
  if (plural !== undefined) return `${method} ${plural}${subresource}`
  return `${method} ${plain
    .split('/')
    .map((part) => part.replace(objectName, '{id}'))
    .join('/')}`
}

const traceparentPattern = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

/** As W3C Trace Context writes it. */
export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** Undefined for anything else than a traceparent. */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = traceparentPattern.exec(text ?? '') ?? []
  if (!/[^0]/.test(traceId) || !/[^0]/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
