/** Calls admission webhooks that have a URL. */
import { request } from 'node:https'
import type { WebhookAnswer, WebhookCall } from '@tenon/devcluster'

/** Limit of a response; real ones are small. */
const maxAnswerBytes = 4 * 1024 * 1024

/** Posts a review. Every failure becomes an answer with kube-apiserver's message. */
export async function callWebhook(call: WebhookCall): Promise<WebhookAnswer> {
  const failed = (reason: string): WebhookAnswer => ({
    kind: 'failed',
    message: `failed to call webhook: Post "${call.url}": ${reason}`,
  })
  try {
    const { status, text } = await post(call)
    if (status !== 200) return failed(`the server answers ${status}`)
    return { kind: 'answered', body: JSON.parse(text) as unknown }
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error))
  }
}

function post(call: WebhookCall): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const { certificateAuthority } = call
    const outgoing = request(call.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      signal: AbortSignal.timeout(call.timeoutMs),
      ...(certificateAuthority !== undefined && { ca: certificateAuthority }),
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      const chunks: Buffer[] = []
      let size = 0
      response.on('error', reject)
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size > maxAnswerBytes) outgoing.destroy(new Error('the answer is too long'))
      })
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
      })
    })
    outgoing.end(call.body)
  })
}
