/** One request to the API server: credentials, rate limit, timeouts, retries and errors. */
import {
  type AnswerCheck,
  type Clock,
  DocumentBody,
  headFault,
  type HttpResponse,
  readText,
  type Transport,
} from '@tenon/runtime'
import { linkedAbort, untilAborted, withDeadline } from '../abortable.ts'
import { KubeError, type Lane } from '../contract.ts'
import type { Rate } from '../token-bucket.ts'
import { type RequestLine, errorOfResponse, errorOfTransport } from './errors.ts'
import type { FieldReader } from './read-fields.ts'
import { RequestLanes } from './request-lanes.ts'

/** One attempt with its result, for metrics. `status` is 0 without a response. */
export interface RequestSample {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly durationMs: number
}

export interface RequesterOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly userAgent?: string
  /** Called before every request, so that a rotated token is used at once. */
  readonly bearerToken?: () => Promise<string | undefined>
  readonly requestTimeoutMs?: number
  readonly rate?: Rate
  readonly onRequest?: (sample: RequestSample) => void
}

/** Maximum retries after `Retry-After`, and the longest pause. */
const retryLimit = 4
const retryAfterLimitMs = 60_000

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: object
  readonly contentType?: string
  readonly signal?: AbortSignal | undefined
  readonly lane?: Lane | undefined
  /** See {@link HttpRequest.gatherMs}. */
  readonly gatherMs?: number
  /** Time limit of the response, as a multiple of the usual timeout; default 1. */
  readonly patience?: number
  /**
   * `read` is retried after 429, and after 503 with Retry-After. `write` only after 429, where the server did nothing.
   * `once` never.
   */
  readonly retry: 'read' | 'write' | 'once'
}

/** A call whose response is one document. */
export interface DocumentCall extends Call {
  /** Validates the response. */
  readonly check: AnswerCheck
  /** Skips parts of the response that nobody reads. */
  readonly reader?: FieldReader | undefined
  /** Only whether the call succeeded matters, not the content. */
  readonly isAnswerUnread?: boolean
}

/** An open response whose body is still arriving; `close` ends it. */
export interface OpenStream {
  readonly body: AsyncIterable<string | Uint8Array>
  readonly signal: AbortSignal
  close(reason: Error): void
}

export class Requester {
  readonly #options: RequesterOptions
  readonly #lanes: RequestLanes | undefined
  readonly #timeoutMs: number

  constructor(options: RequesterOptions) {
    this.#options = options
    this.#lanes = options.rate === undefined ? undefined : new RequestLanes(options.rate, options.clock)
    this.#timeoutMs = options.requestTimeoutMs ?? 30_000
  }

  get clock(): Clock {
    return this.#options.clock
  }

  /**
   * The parsed body of a successful response; an empty object if nobody reads it.
   * @throws KubeError of kind `transport` if the response is invalid; a write may still have taken effect.
   */
  async json<T>(call: DocumentCall): Promise<T> {
    const asked = askedOf(call)
    const ms = this.#timeoutMs * (call.patience ?? 1)
    const answer = await this.#repeated(call, () =>
      withDeadline(
        this.#options.clock,
        { ms, late: () => lateError(asked, ms), signal: call.signal },
        async (signal) => {
          const response = await this.#send(call, signal)
          if (response.status < 400) {
            refuse(asked, response.status, headFault(response))
            return { status: response.status, body: await readAnswer(response.body, call) }
          }
          throw errorOfResponse(asked, response, await readText(response.body), this.#options.clock)
        },
      ),
    )
    const { status, body } = answer
    if (body === undefined) return {} as T
    const document = typeof body === 'string' ? parsed(asked, status, body) : body.document
    refuse(asked, status, call.check(document))
    return document as T
  }

  /** Opens a watch. The timeout applies to the response head; the body stays open until it is closed. */
  async stream(call: Call): Promise<OpenStream> {
    const asked = askedOf(call)
    const { controller, unlink } = linkedAbort(call.signal)
    const { signal } = controller
    try {
      const response = await this.#repeated(call, async () => {
        // The body needs the signal after this attempt, so it is that of the call.
        const cancel = this.#options.clock.after(this.#timeoutMs, () => {
          controller.abort(lateError(asked, this.#timeoutMs))
        })
        try {
          const answer = await untilAborted(this.#send(call, signal), signal)
          if (answer.status < 400) {
            refuse(asked, answer.status, headFault(answer))
            return answer
          }
          const body = await untilAborted(readText(answer.body), signal)
          throw errorOfResponse(asked, answer, body, this.#options.clock)
        } finally {
          cancel()
        }
      })
      return {
        body: response.body,
        signal,
        close: (reason) => {
          unlink()
          controller.abort(reason)
        },
      }
    } catch (error) {
      unlink()
      throw error
    }
  }

  async #repeated<T>(call: Call, attempt: () => Promise<T>): Promise<T> {
    let hasRenewedToken = false
    for (let attempts = 1; ; attempts++) {
      try {
        if (this.#lanes === undefined) return await attempt()
        return await this.#lanes.run(call.lane ?? 'normal', call.signal, attempt)
      } catch (cause) {
        if (call.signal?.aborted) throw cause
        const error = errorOfTransport(askedOf(call), cause)
        if (error.kind === 'unauthorized' && this.#options.bearerToken !== undefined && !hasRenewedToken) {
          // The token may have been rotated between reading and using it, so it is read again.
          hasRenewedToken = true
          continue
        }
        const waitMs = error.retryAfterMs
        if (attempts > retryLimit || waitMs === undefined || waitMs > retryAfterLimitMs) throw error
        if (!mayRepeat(call, error)) throw error
        await this.#options.clock.sleep(waitMs, call.signal)
      }
    }
  }

  async #send(call: Call, signal: AbortSignal): Promise<HttpResponse> {
    const { transport, clock, userAgent = 'tenon', bearerToken, onRequest } = this.#options
    const token = await bearerToken?.()
    const startedAt = clock.monotonic()
    const report = (status: number) =>
      onRequest?.({
        method: call.method,
        path: call.path,
        status,
        durationMs: clock.monotonic() - startedAt,
      })
    try {
      const response = await transport.send(
        {
          method: call.method,
          path: call.path,
          headers: {
            accept: 'application/json',
            'user-agent': userAgent,
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
            ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
          },
          ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
          ...(call.gatherMs !== undefined && { gatherMs: call.gatherMs }),
        },
        signal,
      )
      report(response.status)
      return response
    } catch (error) {
      report(0)
      throw error
    }
  }
}

/** Undefined if nobody reads the response. */
async function readAnswer(
  body: AsyncIterable<string | Uint8Array>,
  call: DocumentCall,
): Promise<string | DocumentBody | undefined> {
  const { reader, isAnswerUnread = false } = call
  // A server in this process: the document can be used directly.
  if (body instanceof DocumentBody) return body
  if (isAnswerUnread) {
    // The body is read to its end, so that the connection can be reused.
    const ends = new Ends()
    for await (const chunk of body) ends.see(chunk)
    if (!ends.areOfAnObject)
      throw new KubeError('transport', 0, `${askedOf(call)}: the answer is not an object`)
    return undefined
  }
  if (reader === undefined) return await readText(body)
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return reader.read(Buffer.concat(chunks))
}

/** First and last character of a body that is not kept. */
class Ends {
  #first: string | undefined
  #last: string | undefined

  see(chunk: string | Uint8Array): void {
    if (chunk.length === 0) return
    const charAt = (at: number) =>
      typeof chunk === 'string' ? chunk.at(at) : String.fromCharCode(chunk.at(at) ?? 0)
    this.#first ??= charAt(0)
    const last = charAt(-1)
    // The API server ends every response with a newline.
    if (last !== '\n') this.#last = last
    else if (chunk.length > 1) this.#last = charAt(-2)
  }

  /** A weak check that the body is a complete JSON object. */
  get areOfAnObject(): boolean {
    return this.#first === '{' && this.#last === '}'
  }
}

function parsed(asked: RequestLine, status: number, text: string): unknown {
  if (text.trim() === '') throw new KubeError('transport', status, `${asked}: the answer is empty`)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new KubeError('transport', status, `${asked}: the answer is not JSON`, { cause })
  }
}

function refuse(asked: RequestLine, status: number, fault: string | undefined): void {
  if (fault !== undefined) throw new KubeError('transport', status, `${asked}: ${fault}`)
}

function lateError(asked: RequestLine, ms: number): KubeError {
  return new KubeError('transport', 0, `${asked}: no answer within ${ms} ms`)
}

function askedOf(call: Call): RequestLine {
  return `${call.method} ${call.path.split('?')[0]}`
}

function mayRepeat(call: Call, error: KubeError): boolean {
  if (call.retry === 'once') return false
  return error.status === 429 || (call.retry === 'read' && error.status === 503)
}
