/** The address of the API server leads to another cluster from some moment on (reports-2.md 2). */
import { type HttpRequest, type HttpResponse, oneChunk, readText, type Transport } from '@tenon/runtime'

/** Kinds that the other cluster does not have. */
const hidden = /\/(pods|nodes|nodeclaims|nodepools)(\/|$)/
const kindOf: ReadonlyMap<string, string> = new Map([
  ['pods', 'Pod'],
  ['nodes', 'Node'],
  ['nodeclaims', 'NodeClaim'],
  ['nodepools', 'NodePool'],
])

/** The connection of one process to the API server; it can be redirected to a cluster with another identity. */
export class AnotherCluster {
  readonly #uid: string
  #here = ''
  #isOn = false
  readonly #watches = new Set<() => void>()

  constructor(uid: string) {
    this.#uid = uid
  }

  /** @param here the identity of the real cluster. */
  hide(here: string): void {
    this.#here = here
    this.#isOn = true
  }

  /** The real cluster responds again; watches opened in between break. */
  show(): void {
    this.#isOn = false
    for (const end of this.#watches) end()
  }

  readonly path = (inner: Transport): Transport => ({
    send: async (request, signal) =>
      (this.#isOn ? this.#own(request, signal) : undefined) ??
      (await this.#renamed(request, await inner.send(request, signal))),
  })

  #own({ method, path }: HttpRequest, signal: AbortSignal | undefined): HttpResponse | undefined {
    const [plain = ''] = path.split('?')
    const plural = hidden.exec(plain)?.[1]
    if (method === 'GET' && path.includes('sendInitialEvents')) return refusal(422, 'Invalid')
    if (plural === undefined) return undefined
    if (method !== 'GET' || !plain.endsWith(`/${plural}`)) return refusal(404, 'NotFound')
    if (path.includes('watch=true')) return { status: 200, headers: {}, body: this.#silence(signal) }
    return json(200, { kind: `${kindOf.get(plural)}List`, metadata: { resourceVersion: '1' }, items: [] })
  }

  async #renamed({ method, path }: HttpRequest, response: HttpResponse): Promise<HttpResponse> {
    if (!this.#isOn || method !== 'GET' || !path.includes('/namespaces') || path.includes('watch=true'))
      return response
    const text = await readText(response.body)
    return { ...response, body: oneChunk(text.replaceAll(this.#here, this.#uid)) }
  }

  async *#silence(signal: AbortSignal | undefined): AsyncGenerator<string> {
    const { promise, reject } = Promise.withResolvers<never>()
    const end = (): void => {
      this.#watches.delete(end)
      reject(new Error('unexpected EOF'))
    }
    this.#watches.add(end)
    signal?.addEventListener('abort', end, { once: true })
    await promise
    yield ''
  }
}

function json(code: number, body: object): HttpResponse {
  return {
    status: code,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

function refusal(code: number, reason: string): HttpResponse {
  return json(code, { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason })
}
