/** Objects that the API server tells in another shape than they have: what validation would never let in. */
import { type HttpRequest, type HttpResponse, oneChunk, readText, type Transport } from '@tenon/runtime'

type Fields = Record<string, unknown>
export type Bend = (object: Fields) => void

interface Bent {
  readonly kind: string
  readonly name: string
  readonly bend: Bend
}

/** Bends objects in every answer. */
export class Misshapen {
  #bent: readonly Bent[] = []

  /** This object alone. */
  bend(kind: string, name: string, bend: Bend): void {
    this.#bent = [{ kind, name, bend }]
  }

  /** This object as well. */
  bendToo(kind: string, name: string, bend: Bend): void {
    this.#bent = [...this.#bent, { kind, name, bend }]
  }

  restore(): void {
    this.#bent = []
  }

  readonly path = (inner: Transport): Transport => ({
    send: async (request, signal) => this.#answer(request, await inner.send(request, signal)),
  })

  async #answer(request: HttpRequest, response: HttpResponse): Promise<HttpResponse> {
    if (request.path.includes('watch=')) return { ...response, body: this.#lines(response.body) }
    const text = await readText(response.body)
    return { ...response, body: oneChunk(this.#bentText(text)) }
  }

  async *#lines(body: HttpResponse['body']): AsyncGenerator<string> {
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of body) {
      rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) yield `${this.#bentText(line)}\n`
    }
    if (rest !== '') yield rest
  }

  #bentText(text: string): string {
    if (!text.startsWith('{') || !this.#bent.some(({ name }) => text.includes(`"${name}"`))) return text
    const answer = JSON.parse(text) as Fields
    const { kind, items, object } = answer as { kind?: string; items?: Fields[]; object?: Fields }
    if (Array.isArray(items)) for (const item of items) this.#bendIf(item, kind?.replace(/List$/, '') ?? '')
    else this.#bendIf(object ?? answer)
    return JSON.stringify(answer)
  }

  #bendIf(object: Fields, kind = String(object['kind'])): void {
    const { name } = (object['metadata'] ?? {}) as { readonly name?: string }
    for (const bent of this.#bent) if (kind === bent.kind && name === bent.name) bent.bend(object)
  }
}

/** Puts a value at a path such as `spec.template`; undefined takes the field away. */
export function put(path: string, value: unknown): Bend {
  return (object) => {
    const steps = path.split('.')
    const last = steps.pop() ?? ''
    let within = object
    for (const step of steps) {
      const next = within[step]
      if (typeof next !== 'object' || next === null) within[step] = {}
      within = within[step] as Fields
    }
    if (value === undefined) delete within[last]
    else within[last] = value
  }
}
