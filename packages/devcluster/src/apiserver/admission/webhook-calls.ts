/** A call of an admission webhook by its URL. */
export interface WebhookCall {
  readonly url: string
  readonly body: string
  readonly timeoutMs: number
  /** PEM; absent: the authorities that the system trusts. */
  readonly certificateAuthority?: string
}

/** How a webhook answered. */
export type WebhookAnswer =
  | { readonly kind: 'answered'; readonly body: unknown }
  | { readonly kind: 'failed'; readonly message: string }
  /** It was not asked. */
  | { readonly kind: 'unknown' }

/** Calls a webhook, and never rejects. */
export type CallWebhook = (call: WebhookCall) => Promise<WebhookAnswer>

/** Thrown where an answer is needed that is not there yet. */
export class WebhookNeeded extends Error {
  readonly call: WebhookCall

  constructor(call: WebhookCall) {
    super(`the answer of ${call.url} is needed`)
    this.name = 'WebhookNeeded'
    this.call = call
  }
}

/**
 * The webhooks' answers to one request. Writes are decided in one go, so a request that needs an answer is
 * broken off, the webhook called, and the request decided again with all answers so far.
 */
export class WebhookCalls {
  readonly #answers: WebhookAnswer[] = []
  #next = 0

  /** The answer to the next call. @throws WebhookNeeded when it is not known. */
  answer(call: WebhookCall): WebhookAnswer {
    const answer = this.#answers[this.#next++]
    if (answer === undefined) throw new WebhookNeeded(call)
    return answer
  }

  /** Takes an answer down and begins again. */
  add(answer: WebhookAnswer): void {
    this.#answers.push(answer)
    this.#next = 0
  }
}

/** Where nothing can be called. */
export const noWebhooks: CallWebhook = ({ url }) =>
  Promise.resolve({ kind: 'failed', message: `failed to call webhook: Post "${url}": no network` })
