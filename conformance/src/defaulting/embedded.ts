import { createTestApiServer } from '@tenon/devcluster/test-api'
import { readText, SeededRandom, VirtualClock } from '@tenon/runtime'
import type { Fields } from './odd-draw.ts'
import type { ServerAnswer } from './compare.ts'

/** Sends requests to an embedded API server as administrator. */
export type AskEmbedded = (
  method: string,
  path: string,
  body?: object,
  contentType?: string,
) => Promise<ServerAnswer & { readonly warning: string | undefined }>

/** Creates an embedded API server. */
export function createEmbedded(): AskEmbedded {
  const server = createTestApiServer({ clock: new VirtualClock(), random: new SeededRandom(7) })
  return async (method, path, body, contentType = 'application/json') => {
    const headers = {
      authorization: 'Bearer admin',
      'content-type': contentType,
      accept: 'application/json',
    }
    const request = { method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await server.handle(request)
    const text = await readText(response.body)
    const isJson = response.headers['content-type']?.startsWith('application/json') === true
    return {
      status: response.status,
      body: isJson ? (JSON.parse(text) as Fields) : { message: text },
      warning: response.headers['warning'],
    }
  }
}
