/** Successful responses with wrong content, as proxies and broken servers return them. */
import {
  DocumentBody,
  DocumentStream,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'

/** What a response may contain instead. */
export const wrongForms = [
  'nothing',
  'emptyObject',
  'emptyList',
  'null',
  'half',
  'page',
  'redirect',
  'another',
] as const

export type WrongForm = (typeof wrongForms)[number]

const bodies: Readonly<Record<Exclude<WrongForm, 'half' | 'another'>, string>> = {
  nothing: '',
  emptyObject: '{}',
  emptyList: '[]',
  null: 'null',
  page: '<!doctype html><html><body>Please log in</body></html>',
  redirect: '',
}

/** What is wrong with the next response, and whether the request takes effect; undefined: nothing. */
export type WrongRule = (
  request: HttpRequest,
) => { readonly form: WrongForm; readonly reachesServer: boolean } | undefined

interface Remembered {
  readonly path: string
  /** Serialized only if it is used as a wrong response. */
  readonly text: () => string
}

/** Wraps the connection to a server, and replaces responses by wrong ones. */
export function wrongAnswers(inner: Transport, rule: WrongRule): Transport {
  const memory = new Map<string, readonly Remembered[]>()
  return {
    async send(request, signal) {
      const wrong = rule(request)
      if (wrong === undefined) {
        const response = await inner.send(request, signal)
        return await remembered(memory, request, response)
      }
      const another = anotherAnswer(memory, request)
      const answer = wrong.reachesServer ? await inner.send(request, signal) : undefined
      return await wrongResponse(wrong.form, answer, another)
    },
  }
}

async function wrongResponse(
  form: WrongForm,
  answer: HttpResponse | undefined,
  another: string,
): Promise<HttpResponse> {
  const headers = { 'content-type': form === 'page' ? 'text/html; charset=utf-8' : 'application/json' }
  if (form === 'redirect')
    return { status: 302, headers: { location: 'https://login.example.com/' }, body: oneChunk('') }
  if (form === 'another') return { status: 200, headers, body: oneChunk(another) }
  if (form !== 'half') return { status: 200, headers, body: oneChunk(bodies[form]) }
  const isDocument = answer !== undefined && !(answer.body instanceof DocumentStream)
  const text = isDocument ? await readText(answer.body) : '{"kind":"Status","metadata":{}}'
  return { status: 200, headers, body: oneChunk(text.slice(0, Math.max(1, Math.floor(text.length / 2)))) }
}

/** Remembers the most recent responses about single objects and creations, by request. */
async function remembered(
  memory: Map<string, readonly Remembered[]>,
  request: HttpRequest,
  response: HttpResponse,
): Promise<HttpResponse> {
  const { status, headers, body } = response
  if (status >= 300 || body instanceof DocumentStream || request.path.includes('watch=true')) return response
  const key = patternOf(request)
  // Lists are long; an object in place of another one does more harm.
  if (request.method === 'GET' && !key.includes('*')) return response
  const written = body instanceof DocumentBody ? undefined : await readText(body)
  const text = () => written ?? JSON.stringify((body as DocumentBody).document)
  const known = memory.get(key) ?? []
  const path = request.method === 'POST' ? `${request.path}#${known.length}` : request.path
  memory.set(key, [...known.filter((each) => each.path !== path), { path, text }].slice(-4))
  return written === undefined ? response : { status, headers, body: oneChunk(written) }
}

/** An earlier response to the same request about another object, or else to another request. */
function anotherAnswer(memory: ReadonlyMap<string, readonly Remembered[]>, request: HttpRequest): string {
  const pattern = patternOf(request)
  const same = memory.get(pattern)?.findLast(({ path }) => path !== request.path)
  if (same !== undefined) return same.text()
  for (const [key, answers] of memory) {
    const [last] = answers.slice(-1)
    if (key !== pattern && last !== undefined) return last.text()
  }
  return '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"another","uid":"1","resourceVersion":"1"}}'
}

/**
 * Method and path without the names of objects: `PATCH /apis/karpenter.sh/v1/nodeclaims/NAME/status` has `*`
 * for its name.
 */
export function patternOf({ method, path }: Pick<HttpRequest, 'method' | 'path'>): string {
  const [plain = '', query = ''] = path.split('?')
  const isWatch = query.includes('watch=true')
  const parts = plain.split('/')
  // /api/v1/… and /apis/GROUP/VERSION/…; the cloud's paths are /v2/… with an id after each collection.
  const start = parts[1] === 'apis' ? 4 : 3
  const inNamespace = parts[start] === 'namespaces' && parts.length > start + 2
  const name = inNamespace ? start + 3 : parts[1] === 'v2' ? 3 : start + 1
  const general = parts.map((part, at) =>
    at === name || (inNamespace && at === start + 1) ? part.replace(/^[^:]+/, '*') : part,
  )
  return `${isWatch ? 'WATCH' : method} ${general.join('/')}`
}
