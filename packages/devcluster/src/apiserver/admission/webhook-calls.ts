/** A request to an admission webhook by URL. */
export interface WebhookCall {
  readonly url: string
  readonly body: string
  readonly timeoutMs: number
  /** PEM; default: the system's certificate authorities. */
  readonly certificateAuthority?: string
}

/** The response of a webhook. */
export type WebhookAnswer =
  | { readonly kind: 'answered'; readonly body: unknown }
  | { readonly kind: 'failed'; readonly message: string }
  /** The webhook was not called. */
  | { readonly kind: 'unknown' }

/** Calls a webhook. Never rejects. */
export type CallWebhook = (call: WebhookCall) => Promise<WebhookAnswer>

/** Thrown if the response of a webhook is missing. */
export class WebhookNeeded extends Error {
  readonly call: WebhookCall

  constructor(call: WebhookCall) {
    super(`the answer of ${call.url} is needed`)
    this.name = 'WebhookNeeded'
    this.call = call
  }
}

/**
 * The webhook responses of one request. Writes are synchronous, so a request that needs a response is aborted, the
 * webhook called, and the request repeated with all responses so far.
 */
export class WebhookCalls {
  readonly #answers: WebhookAnswer[] = []
  #next = 0

  /**
   * The response to the next call.
   * @throws WebhookNeeded if it is missing.
   */
  answer(call: WebhookCall): WebhookAnswer {
    const answer = this.#answers[this.#next++]
    if (answer === undefined) throw new WebhookNeeded(call)
    return answer
  }

  /** Stores a response and restarts. */
  add(answer: WebhookAnswer): void {
    this.#answers.push(answer)
    this.#next = 0
  }
}

/** For servers that cannot call webhooks. */
export const noWebhooks: CallWebhook = ({ url }) =>
  Promise.resolve({ kind: 'failed', message: `failed to call webhook: Post "${url}": no network` })
