/** Tells what becomes of watches, and what the API server refuses. */
import type { HttpRequest, HttpResponse, Transport } from '@tenon/runtime'

export interface RequestObserver {
  /** A watch of a path has begun or ended. */
  readonly watching: (path: string, isOpen: boolean) => void
  /** A path was answered with this status. */
  readonly answered: (path: string, status: number) => void
}

export function observedTransport(transport: Transport, observer: RequestObserver): Transport {
  return {
    send: async (request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> => {
      const [path = '', query = ''] = request.path.split('?')
      const response = await transport.send(request, signal)
      observer.answered(path, response.status)
      if (!/(^|&)watch=(true|1)/.test(query) || response.status !== 200) return response
      observer.watching(path, true)
      return { ...response, body: told(response.body, () => observer.watching(path, false)) }
    },
  }
}

async function* told(
  body: HttpResponse['body'],
  ended: () => void,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  try {
    yield* body
  } finally {
    ended()
  }
}
