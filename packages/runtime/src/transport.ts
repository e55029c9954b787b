/** An HTTP request, as both clients and in-process servers see it. Header names are lower case. */
export interface HttpRequest {
  readonly method: string
  /** Escaped path with query, exactly as on the wire: `/api/v1/pods?limit=5`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /**
   * The reader prefers fewer, larger chunks: data of a stream that arrives within this many milliseconds of the
   * last read may be delivered together. In-process servers ignore it.
   */
  readonly gatherMs?: number
}

/** `body` yields chunks as they arrive; that of a watch yields until the watch ends. */
export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<string | Uint8Array>
}

/**
 * Sends requests to one server, over a socket or in process. Rejects on transport failures (refused, reset,
 * timeout, abort); resolves for every HTTP status.
 */
export interface Transport {
  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse>
}

/** An in-process HTTP server, called by a socket server or by an in-process {@link Transport}. */
export type HttpHandler = (request: HttpRequest, signal?: AbortSignal) => Promise<HttpResponse>

/** Reads a whole body as UTF-8 text. */
export async function readText(body: AsyncIterable<string | Uint8Array>): Promise<string> {
  let decoder: InstanceType<typeof TextDecoder> | undefined
  let text = ''
  for await (const chunk of body) {
    if (typeof chunk === 'string') text += chunk
    else text += (decoder ??= new TextDecoder()).decode(chunk, { stream: true })
  }
  return decoder === undefined ? text : text + decoder.decode()
}

export async function* oneChunk(text: string | Uint8Array): AsyncGenerator<string | Uint8Array> {
  yield text
}
