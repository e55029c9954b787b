/** Servers that return invalid responses. */
import {
  type Clock,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'
import type { AnswerFault, UnreadableAnswer } from './case.ts'

/** Wraps the connection to a server, and applies its faults. */
export function unreadable(
  inner: Transport,
  server: AnswerFault['server'],
  faults: readonly AnswerFault[],
  clock: Pick<Clock, 'monotonic'>,
): Transport {
  const mine = faults.filter((fault) => fault.server === server).map((fault) => ({ fault, struck: 0 }))
  if (mine.length === 0) return inner
  let last: string | undefined
  return {
    async send(request, signal) {
      const now = clock.monotonic()
      const entry = mine.find(({ fault, struck }) => {
        const isDue = now >= fault.atMs && (fault.forMs === undefined || now < fault.atMs + fault.forMs)
        return isDue && (fault.times === undefined || struck < fault.times) && concerns(fault, request)
      })
      const response = await inner.send(request, signal)
      if (request.path.includes('watch=true')) return response
      if (entry === undefined) return response
      entry.struck++
      const text = await readText(response.body)
      const answer = spoilt(entry.fault.answer, text, last)
      last = text
      return answer
    },
  }
}

function concerns({ server, method, resource, isSingle }: AnswerFault, request: HttpRequest): boolean {
  if (request.method !== method || request.path.includes('watch=true')) return false
  const path = request.path.split('?')[0] ?? ''
  const parts = path.split('/')
  const at = parts.lastIndexOf(resource)
  if (at < 0) return false
  // Skips the API's root; the segment after the resource is the object's name.
  if (server === 'kubernetes' && at < 3) return false
  return isSingle === at < parts.length - 1
}

function spoilt(answer: UnreadableAnswer, text: string, other: string | undefined): HttpResponse {
  const json = { 'content-type': 'application/json' }
  const said = (
    body: string,
    status = 200,
    headers: Readonly<Record<string, string>> = json,
  ): HttpResponse => ({
    status,
    headers,
    body: oneChunk(body),
  })
  switch (answer) {
    case 'nothing':
      return said('')
    case 'emptyObject':
      return said('{}')
    case 'emptyList':
      return said('[]')
    case 'null':
      return said('null')
    case 'halfBody':
      return said(text.slice(0, text.length >> 1))
    case 'html':
      return said('<html><body>Bad gateway</body></html>', 200, { 'content-type': 'text/html' })
    case 'redirect':
      return said('', 302, { location: 'https://login.invalid/' })
    case 'noContent':
      return said('', 204)
    case 'otherObject':
      return said(other ?? '{"apiVersion":"v1","kind":"Status","status":"Success"}')
  }
}
