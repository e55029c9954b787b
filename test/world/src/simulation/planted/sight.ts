/** A controller with a wrong view of objects. */
import { type KubeObject, ownValue } from '@tenon/api'
import { type HttpRequest, type HttpResponse, oneChunk, readText, type Transport } from '@tenon/runtime'

type DistortedKinds = Readonly<Record<string, (object: KubeObject) => KubeObject>>

/** Changes objects that are read from the given collections; writes are unchanged. */
export function distorted(inner: Transport, sees: DistortedKinds): Transport {
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      const change = ownValue(sees, pluralOf(request))
      if (change === undefined || response.status >= 300) return response
      if (request.path.includes('watch=true')) return { ...response, body: lines(response.body, change) }
      return await changed(response, change)
    },
  }
}

/** `pods` of `/api/v1/namespaces/default/pods/a?x=y`. */
export function pluralOf({ path }: HttpRequest): string {
  const parts = (path.split('?')[0] ?? '').split('/').slice(1)
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  return (rest[0] === 'namespaces' && rest.length > 2 ? rest[2] : rest[0]) ?? ''
}

async function changed(
  response: HttpResponse,
  change: (object: KubeObject) => KubeObject,
): Promise<HttpResponse> {
  const body = JSON.parse(await readText(response.body)) as KubeObject & { readonly items?: KubeObject[] }
  const seen = body.items === undefined ? change(body) : { ...body, items: body.items.map(change) }
  return { ...response, body: oneChunk(JSON.stringify(seen)) }
}

async function* lines(
  body: AsyncIterable<string | Uint8Array>,
  change: (object: KubeObject) => KubeObject,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    const end = rest.lastIndexOf('\n') + 1
    const whole = rest.slice(0, end)
    rest = rest.slice(end)
    if (whole !== '')
      yield whole
        .split('\n')
        .map((line) => event(line, change))
        .join('\n')
  }
}

function event(line: string, change: (object: KubeObject) => KubeObject): string {
  if (line === '') return line
  const parsed = JSON.parse(line) as { readonly type: string; readonly object: KubeObject }
  if (parsed.type === 'BOOKMARK' || parsed.type === 'ERROR') return line
  return JSON.stringify({ ...parsed, object: change(parsed.object) })
}
