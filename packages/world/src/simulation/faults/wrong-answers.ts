/** Answers with a good status that are not what was asked for, as proxies and broken servers give them. */
import {
  DocumentBody,
  DocumentStream,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'

/** What an answer can be instead of what was asked for. */
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

/** What is wrong with the next answer, and whether the server was asked at all; undefined lets the request pass. */
export type WrongRule = (
  request: HttpRequest,
) => { readonly form: WrongForm; readonly reachesServer: boolean } | undefined

/** The way to a server on which answers are exchanged for wrong ones. */
export function wrongAnswers(inner: Transport, rule: WrongRule): Transport {
  const memory = new Map<string, { readonly path: string; readonly body: string }[]>()
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

/** Answers about an object each, or to the creation of one: the newest few, by what was asked. */
async function remembered(
  memory: Map<string, { readonly path: string; readonly body: string }[]>,
  request: HttpRequest,
  response: HttpResponse,
): Promise<HttpResponse> {
  const { status, headers, body } = response
  if (status >= 300 || body instanceof DocumentStream || request.path.includes('watch=true')) return response
  const text = await readText(body)
  const key = patternOf(request)
  const known = memory.get(key) ?? []
  const path = request.method === 'POST' ? `${request.path}#${known.length}` : request.path
  memory.set(key, [...known.filter((each) => each.path !== path), { path, body: text }].slice(-4))
  return { status, headers, body: body instanceof DocumentBody ? body : oneChunk(text) }
}

/** What was answered to the same question about something else; to another question where there was none. */
function anotherAnswer(
  memory: ReadonlyMap<string, readonly { readonly path: string; readonly body: string }[]>,
  request: HttpRequest,
): string {
  const pattern = patternOf(request)
  const same = memory.get(pattern)?.findLast(({ path }) => path !== request.path)
  if (same !== undefined) return same.body
  for (const [key, answers] of memory) {
    const [last] = answers.slice(-1)
    if (key !== pattern && last !== undefined) return last.body
  }
  return '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"another","uid":"1","resourceVersion":"1"}}'
}

/** Method and path without the names of objects: `PATCH /apis/karpenter.sh/v1/nodeclaims/NAME/status` has a star for its name. */
export function patternOf({ method, path }: Pick<HttpRequest, 'method' | 'path'>): string {
  const [plain = '', query = ''] = path.split('?')
  const isWatch = query.includes('watch=true')
  const parts = plain.split('/')
  // /api/v1/… and /apis/GROUP/VERSION/…; the cloud has /v2/… with an id after each collection.
  const start = parts[1] === 'apis' ? 4 : 3
  const inNamespace = parts[start] === 'namespaces' && parts.length > start + 2
  const name = inNamespace ? start + 3 : parts[1] === 'v2' ? 3 : start + 1
  const general = parts.map((part, at) =>
    at === name || (inNamespace && at === start + 1) ? part.replace(/^[^:]+/, '*') : part,
  )
  return `${isWatch ? 'WATCH' : method} ${general.join('/')}`
}
