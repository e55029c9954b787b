/** A server behind a load balancer that answers lists as they were a while ago. */
import { oneChunk, readText, type Transport } from '@tenon/runtime'
import type { Weather } from '../simulation/faults/weather.ts'

/** Lists of these, of all of them or of those on a node. */
const listed = /\/(?:nodes|pods)(?:\?|$)/

/** The way to the API server; a list of nodes or pods may be the answer that the same request had before. */
export function staleLists(inner: Transport, weather: Pick<Weather, 'strikes'>): Transport {
  const before = new Map<string, string>()
  return {
    send: async (request, signal) => {
      const { method, path } = request
      if (method !== 'GET' || path.includes('watch=') || !listed.test(path))
        return await inner.send(request, signal)
      const old = before.get(path)
      const response = await inner.send(request, signal)
      if (response.status !== 200) return response
      const text = await readText(response.body)
      before.set(path, text)
      return { ...response, body: oneChunk(old !== undefined && weather.strikes('staleList') ? old : text) }
    },
  }
}
