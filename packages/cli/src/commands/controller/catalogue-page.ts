/** `GET /debug/catalogue`: what is for sale to each NodePool, as JSON (console.md 1). */
import { type CatalogueSource, takeCatalogues, type TakenCatalogues } from '@tenon/ask/snapshot'
import { type HttpHandler, inTurns, jsonParts } from '@tenon/runtime'

/** Path of the page. */
export const cataloguePath = '/debug/catalogue'

/** Answers every request with the offerings of this moment, their prices, and which of them launches avoid. */
export function cataloguePage(source: CatalogueSource): HttpHandler {
  return async (_request, signal = new AbortController().signal) => {
    const taken = await takeCatalogues(source, signal)
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: inTurns(partsOf(taken)),
    }
  }
}

/** A list of instance types may be large: decisions go on while it is written. */
function* partsOf({ catalogues, priceUnit }: TakenCatalogues): Generator<string, void, undefined> {
  const unit = priceUnit === undefined ? '' : `"priceUnit":${JSON.stringify(priceUnit)},`
  yield `{${unit}"catalogues":[`
  for (const [at, catalogue] of catalogues.entries()) {
    if (at > 0) yield ','
    yield* jsonParts({ ...catalogue })
  }
  yield ']}'
}
