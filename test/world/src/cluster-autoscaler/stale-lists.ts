/** A server behind a load balancer that returns outdated lists. */
import { oneChunk, readText, type Transport } from '@tenon/runtime'
import type { Weather } from '../simulation/faults/weather.ts'

/** Lists of nodes or pods, also of those on one node. */
const listed = /\/(?:nodes|pods)(?:\?|$)/

/** Wraps the connection to the API server; a list of nodes or pods may be an earlier response to the same request. */
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
