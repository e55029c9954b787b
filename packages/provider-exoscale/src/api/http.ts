/** One signed call: attempts, timeouts, decoding. */
import {
  type AnswerCheck,
  type Clock,
  DocumentBody,
  headFault,
  isJsonType,
  readText,
  type Transport,
} from '@tenon/runtime'
import { apiErrorFrom, ExoscaleApiError, ExoscaleConnectionError, ExoscaleTransportError } from './errors.ts'
import { authorization, type Credentials } from './signature.ts'

const signatureLifetimeSeconds = 600
const defaultAttemptTimeoutMs = 60_000

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** After the endpoint, escaped, such as `/instance?labels=a`. */
  readonly path: string
  readonly body?: object
  /** Validates the response. */
  readonly check: AnswerCheck
  readonly signal?: AbortSignal | undefined
  /** False for the public zone list. */
  readonly isSigned?: boolean
  /** Whether it may be sent again after it may have had an effect. Default: unless it is a POST. */
  readonly isRepeatable?: boolean
}

export interface HttpOptions {
  readonly transport: Transport
  /** Path of the endpoint, normally `/v2`. */
  readonly basePath: string
  readonly credentials: Credentials
  readonly clock: Clock
  readonly userAgent: string
  /** Attempts per call; default 5. */
  readonly maxAttempts?: number
  /** Time limit of one attempt; default one minute. */
  readonly attemptTimeoutMs?: number
}

/** Sends calls to one endpoint. Rejects with the errors of `errors.ts`, or the signal's reason. */
export class ExoscaleHttp {
  readonly #options: HttpOptions

  constructor(options: HttpOptions) {
    this.#options = options
  }

  async call<T>(call: Call): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt<T>(call)
      } catch (error) {
        call.signal?.throwIfAborted()
        if (attempt >= (this.#options.maxAttempts ?? defaultMaxAttempts)) throw error
        const delayMs = retryDelayMs(error, call.isRepeatable ?? call.method !== 'POST', attempt)
        if (delayMs === undefined) throw error
        await this.#options.clock.sleep(delayMs, call.signal)
      }
    }
  }

  async #attempt<T>(call: Call): Promise<T> {
    const { clock, attemptTimeoutMs = defaultAttemptTimeoutMs } = this.#options
    const stopping = new AbortController()
    const cancel = clock.after(attemptTimeoutMs, () => {
      stopping.abort(new Error(`no answer within ${attemptTimeoutMs / 1000} s`))
    })
    // Cheaper than `AbortSignal.any`, whose parts are only released by the garbage collector.
    const follow = () => {
      stopping.abort(call.signal?.reason)
    }
    if (call.signal?.aborted === true) follow()
    call.signal?.addEventListener('abort', follow, { once: true })
    try {
      return await this.#exchange<T>(call, stopping.signal)
    } catch (error) {
      if (error instanceof ExoscaleApiError) throw error
      const neverSent = error instanceof ExoscaleConnectionError
      const said = error instanceof Error ? error.message : String(error)
      throw new ExoscaleTransportError(`${call.method} ${call.path}: ${said}`, neverSent, error)
    } finally {
      cancel()
      call.signal?.removeEventListener('abort', follow)
    }
  }

  async #exchange<T>(call: Call, signal: AbortSignal): Promise<T> {
    const { transport, clock } = this.#options
    signal.throwIfAborted()
    const response = await transport.send(this.#request(call), signal)
    const { status, headers, body } = response
    if (status >= 400) {
      const text = this.#withoutSecrets(await readText(body), call)
      // A 404 of a proxy says nothing about instances; the API's is JSON.
      if (status === 404 && !(isJsonType(headers['content-type']) && isJson(text)))
        throw new Error(
          `the server answered 404 without saying what is missing: ${text.trim().slice(0, 200)}`,
        )
      throw apiErrorFrom(status, text, parseRetryAfter(headers['retry-after'], clock.now()))
    }
    refuse(headFault(response))
    // A cloud in this process: the document can be used directly.
    const document = body instanceof DocumentBody ? body.document : parsed(await readText(body))
    refuse(call.check(document))
    return document as T
  }

  /** Removes the bootstrap token from messages, as the API may quote a refused request. */
  #withoutSecrets(text: string, { body }: Call): string {
    const userData = body !== undefined && 'user-data' in body ? String(body['user-data']) : ''
    const secrets = [this.#options.credentials.secret.reveal(), userData].filter((secret) => secret !== '')
    return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
  }

  #request(call: Call): Parameters<Transport['send']>[0] {
    const { basePath, clock, credentials, userAgent } = this.#options
    const path = `${basePath}${call.path}`
    const body = call.body === undefined ? '' : JSON.stringify(call.body)
    const expires = Math.floor(clock.now() / 1000) + signatureLifetimeSeconds
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': userAgent }
    if (call.isSigned !== false) {
      headers.authorization = authorization({ method: call.method, path, body, expires }, credentials)
    }
    if (body === '') return { method: call.method, path, headers }
    headers['content-type'] = 'application/json'
    return { method: call.method, path, headers, body }
  }
}

function parsed(text: string): unknown {
  if (text.trim() === '') throw new Error('the answer is empty')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error('the answer is not JSON', { cause })
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function refuse(fault: string | undefined): void {
  if (fault !== undefined) throw new Error(fault)
}

const defaultMaxAttempts = 5
const maxWaitMs = 30_000

/**
 * How long to wait before a retry; undefined if the failure is final. A call that is not repeatable is only retried if it
 * certainly had no effect: rate-limited, or never sent.
 */
function retryDelayMs(error: unknown, isRepeatable: boolean, attempt: number): number | undefined {
  const backoffMs = Math.min(1000 * 2 ** (attempt - 1), maxWaitMs)
  if (error instanceof ExoscaleTransportError) {
    return isRepeatable || error.neverSent ? backoffMs : undefined
  }
  if (!(error instanceof ExoscaleApiError)) return undefined
  const { status } = error
  if (status !== 429 && !(isRepeatable && status >= 500 && status !== 501)) return undefined
  return (status === 429 || status === 503 ? error.retryAfterMs : undefined) ?? backoffMs
}

/** `Retry-After` in milliseconds: seconds or an HTTP date; a date in the past means at once. */
function parseRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
