/** `GET /debug/catalogue`: what is for sale to each NodePool, as JSON (console.md 1). */
import { takeCatalogues } from '@tenon/ask/snapshot'
import type { Operator } from '@tenon/operator'
import { type HttpHandler, oneChunk } from '@tenon/runtime'

/** Path of the page. */
export const cataloguePath = '/debug/catalogue'

/** Answers every request with the offerings of this moment, their prices, and which of them launches avoid. */
export function cataloguePage(operator: Operator): HttpHandler {
  return async (_request, signal = new AbortController().signal) => {
    const taken = await takeCatalogues({ operator, provider: operator.provider }, signal)
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: oneChunk(JSON.stringify(taken)),
    }
  }
}
