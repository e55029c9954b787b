/** A transport for tests that answers from a script, or never. */
import { type HttpRequest, type HttpResponse, oneChunk, type Transport } from '@tenon/runtime'

export type Answer = (request: HttpRequest, signal: AbortSignal | undefined) => Promise<HttpResponse>

/** Answers the requests by `answers`, one each; the last one answers everything after. */
export class ScriptedTransport implements Transport {
  readonly requests: HttpRequest[] = []
  readonly #answers: readonly Answer[]

  constructor(...answers: readonly Answer[]) {
    this.#answers = answers
  }

  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    const answer = this.#answers[Math.min(this.requests.length, this.#answers.length - 1)]
    this.requests.push(request)
    return answer === undefined ? Promise.reject(new Error('no answer left')) : answer(request, signal)
  }
}

export function json(status: number, body: object, headers: Record<string, string> = {}): Answer {
  return () =>
    Promise.resolve({
      status,
      headers: { 'content-type': 'application/json', ...headers },
      body: oneChunk(JSON.stringify(body)),
    })
}

export function text(status: number, body: string, headers: Record<string, string> = {}): Answer {
  return () => Promise.resolve({ status, headers, body: oneChunk(body) })
}

export function refusal(code: number, reason: string, details: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    message: `refused as ${reason}`,
    reason,
    code,
    ...details,
  }
}

/** Fails like a connection that breaks. */
export function broken(message = 'connection reset'): Answer {
  return () => Promise.reject(new Error(message))
}

/** Never answers and, like a dead peer, does not notice an abort either. */
export const silence: Answer = () => new Promise(() => undefined)
