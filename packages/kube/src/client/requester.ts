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
import { type Asked, errorOfResponse, errorOfTransport } from './errors.ts'
import type { FieldReader } from './read-fields.ts'
import { RequestLanes } from './request-lanes.ts'

/** One answered or failed attempt, for metrics. `status` is 0 when nothing was answered. */
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
  /** Asked before every request, so that a rotated token is used at once. */
  readonly bearerToken?: () => Promise<string | undefined>
  readonly requestTimeoutMs?: number
  readonly rate?: Rate
  readonly onRequest?: (sample: RequestSample) => void
}

/** How often an attempt is repeated after `Retry-After`, and the longest pause that is waited. */
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
  /** How many times the usual timeout the answer may take; default 1. */
  readonly patience?: number
  /**
   * `read` is repeated after 429 and 503 with Retry-After, `write` only after 429 (the server
   * refused it before doing anything), `once` never.
   */
  readonly retry: 'read' | 'write' | 'once'
}

/** A call that is answered with one document. */
export interface DocumentCall extends Call {
  /** Nothing of an answer is believed before it has passed. */
  readonly check: AnswerCheck
  /** Reads the answer, where not all of it matters. */
  readonly reader?: FieldReader | undefined
  /** Nothing of the answer matters but whether it is a good one. */
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
   * The parsed body of a successful answer; of one that nobody reads, an empty object.
   * @throws KubeError of kind `transport` when the answer is not what was asked for: a write may have had
   * its effect all the same.
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

  /** Opens a watch. The timeout covers the head of each answer; the body lives until closed. */
  async stream(call: Call): Promise<OpenStream> {
    const asked = askedOf(call)
    const { controller, unlink } = linkedAbort(call.signal)
    const { signal } = controller
    try {
      const response = await this.#repeated(call, async () => {
        // The signal of one attempt must outlive it, as the body ends with it; so it is the call's own.
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
          // The token may have been rotated between reading and using it; it is read again.
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

/** Undefined for an answer that nobody reads. */
async function readAnswer(
  body: AsyncIterable<string | Uint8Array>,
  call: DocumentCall,
): Promise<string | DocumentBody | undefined> {
  const { reader, isAnswerUnread = false } = call
  // A server of this process: what it has can be read as it is.
  if (body instanceof DocumentBody) return body
  if (isAnswerUnread) {
    // To its end all the same, as the connection is used again.
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

/** The first and the last character of a body that is not kept. */
class Ends {
  #first: string | undefined
  #last: string | undefined

  see(chunk: string | Uint8Array): void {
    if (chunk.length === 0) return
    const charAt = (at: number) =>
      typeof chunk === 'string' ? chunk.at(at) : String.fromCharCode(chunk.at(at) ?? 0)
    this.#first ??= charAt(0)
    const last = charAt(-1)
    // The API server ends every answer with a new line.
    if (last !== '\n') this.#last = last
    else if (chunk.length > 1) this.#last = charAt(-2)
  }

  /** Two bytes tell neither which object nor that all of it came; half of it ends otherwise, mostly. */
  get areOfAnObject(): boolean {
    return this.#first === '{' && this.#last === '}'
  }
}

function parsed(asked: Asked, status: number, text: string): unknown {
  if (text.trim() === '') throw new KubeError('transport', status, `${asked}: the answer is empty`)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new KubeError('transport', status, `${asked}: the answer is not JSON`, { cause })
  }
}

function refuse(asked: Asked, status: number, fault: string | undefined): void {
  if (fault !== undefined) throw new KubeError('transport', status, `${asked}: ${fault}`)
}

function lateError(asked: Asked, ms: number): KubeError {
  return new KubeError('transport', 0, `${asked}: no answer within ${ms} ms`)
}

function askedOf(call: Call): Asked {
  return `${call.method} ${call.path.split('?')[0]}`
}

function mayRepeat(call: Call, error: KubeError): boolean {
  if (call.retry === 'once') return false
  return error.status === 429 || (call.retry === 'read' && error.status === 503)
}
