/** Observes watches and the statuses of responses. */
import type { HttpRequest, HttpResponse, Transport } from '@tenon/runtime'

export interface RequestObserver {
  /** A watch of a path was opened or has ended. */
  readonly watching: (path: string, isOpen: boolean) => void
  /** Called with the status of each response. */
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
      return { ...response, body: observed(response.body, () => observer.watching(path, false)) }
    },
  }
}

async function* observed(
  body: HttpResponse['body'],
  ended: () => void,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  try {
    yield* body
  } finally {
    ended()
  }
}
