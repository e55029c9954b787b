/** What instances cost, as far as anybody knows. */
import type { Node, NodeClaim } from '@tenon/api'
import { PriceList } from '@tenon/ask/cost'
import type { SnapshotCatalogue } from '@tenon/ask'
import type { ClaimPrices } from '@tenon/operator'

export class Prices {
  /** What the controller says now. */
  #told: ReadonlyMap<string, number> = new Map()
  /** The last price of a claim whose type is not for sale any more (console.md, trap 2). */
  readonly #last = new Map<string, number>()
  /** Of Nodes without a NodeClaim. */
  #paid: ReadonlyMap<string, number> = new Map()
  #list: PriceList | undefined
  #currency: string | undefined

  get currency(): string | undefined {
    return this.#currency
  }

  /** @returns names of the claims that cost something else than before. */
  tell({ nodeClaims, currency }: ClaimPrices): readonly string[] {
    const told = new Map(nodeClaims.map(({ name, pricePerHour }) => [name, pricePerHour]))
    const changed = [...told].flatMap(([name, price]) => (this.#last.get(name) === price ? [] : [name]))
    this.#told = told
    for (const [name, price] of told) this.#last.set(name, price)
    this.#currency = currency ?? this.#currency
    return changed
  }

  sell(catalogues: readonly SnapshotCatalogue[], currency: string | undefined): void {
    this.#list = new PriceList({ catalogues })
    this.#currency = currency ?? this.#currency
  }

  /** @param paid by name of the Node. */
  pay(paid: ReadonlyMap<string, number>): void {
    this.#paid = paid
  }

  forget(claim: string): void {
    if (!this.#told.has(claim)) this.#last.delete(claim)
  }

  /** A claim costs nothing before it was launched. */
  of(node: Node | undefined, claim: NodeClaim | undefined): number | undefined {
    const object = node ?? claim
    if (object === undefined) return undefined
    if (node === undefined && (claim?.status?.providerID ?? '') === '') return undefined
    const name = claim?.metadata.name
    const told = name === undefined ? undefined : this.#told.get(name)
    if (told !== undefined) return told
    const listed = this.#list?.of(object)
    if (name === undefined) return this.#paid.get(node?.metadata.name ?? '') ?? listed
    if (listed === undefined) return this.#last.get(name)
    this.#last.set(name, listed)
    return listed
  }
}
