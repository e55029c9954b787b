/** Why the server did not open a WebSocket. */
import type { IncomingMessage } from 'node:http'
import { errorOfResponse, errorOfTransport } from '../client/errors.ts'
import type { KubeError } from '../contract.ts'

/** A Status is short; of longer responses the beginning is enough. */
const longestAnswerBytes = 64 * 1024

/** The error of a response other than 101. */
export async function refusalOf(asked: string, response: IncomingMessage): Promise<KubeError> {
  try {
    let text = ''
    for await (const chunk of response) {
      text += String(chunk)
      if (text.length > longestAnswerBytes) break
    }
    const status = response.statusCode ?? 0
    return errorOfResponse(asked, { status, headers: {} }, text, { now: () => 0 })
  } catch (cause) {
    return errorOfTransport(asked, cause)
  }
}
