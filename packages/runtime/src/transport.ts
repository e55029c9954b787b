/** An HTTP request as both clients and in-process servers see it. Header names are lower case. */
export interface HttpRequest {
  readonly method: string
  /** Escaped path with its query, exactly as on the wire, for example `/api/v1/pods?limit=5`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /**
   * Who reads the answer would rather be woken seldom than at once: of an answer that goes on and on, what arrives
   * within so many milliseconds of the last reading may be handed over together. Whoever has nothing to wait for on
   * its way, such as a server of this process, takes no notice.
   */
  readonly gatherMs?: number
}

/** An HTTP response. `body` yields chunks as they arrive; a watch yields until it ends. */
export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<string | Uint8Array>
}

/**
 * Carries requests to one server: over a socket, or straight into an in-process one.
 * Rejects on transport failures (refused, reset, timeout, abort); any answered status resolves.
 */
export interface Transport {
  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse>
}

/** An in-process HTTP server: what a socket adaptor or an in-process {@link Transport} calls. */
export type HttpHandler = (request: HttpRequest, signal?: AbortSignal) => Promise<HttpResponse>

/** Reads a body to its end as UTF-8 text. */
export async function readText(body: AsyncIterable<string | Uint8Array>): Promise<string> {
  let decoder: InstanceType<typeof TextDecoder> | undefined
  let text = ''
  for await (const chunk of body) {
    if (typeof chunk === 'string') text += chunk
    else text += (decoder ??= new TextDecoder()).decode(chunk, { stream: true })
  }
  return decoder === undefined ? text : text + decoder.decode()
}

/** A body of one chunk. */
export async function* oneChunk(text: string | Uint8Array): AsyncGenerator<string | Uint8Array> {
  yield text
}
