import { request } from 'node:https'
import { type Clock, sleepOn } from '@tenon/runtime'

/** One request to a starting API server, whose certificate may not be known yet. */
export interface ApiProbe {
  readonly endpoint: string
  readonly token: string
  readonly clock: Clock
}

const requestTimeoutMs = 2_000
const pollMs = 50

/** Resolves with the body once GET `path` returns 200; `signal` ends the wait. */
export async function waitForPath(probe: ApiProbe, path: string, signal: AbortSignal): Promise<string> {
  for (;;) {
    signal.throwIfAborted()
    const answer = await get(probe, path)
    if (answer?.status === 200) return answer.body
    await sleepOn(probe.clock, pollMs, signal)
  }
}

interface Answer {
  readonly status: number
  readonly body: string
}

/** Undefined without a response, which is normal while the server starts. */
function get(probe: ApiProbe, path: string): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const outgoing = request(
      `${probe.endpoint}${path}`,
      {
        headers: { authorization: `Bearer ${probe.token}` },
        // This process started the server on loopback, and the server generates its own certificate.
        rejectUnauthorized: false,
        timeout: requestTimeoutMs,
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') })
        })
        response.on('error', () => resolve(undefined))
      },
    )
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', () => resolve(undefined))
    outgoing.end()
  })
}
