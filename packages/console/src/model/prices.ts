/** What instances cost, as far as known. */
import type { Node, NodeClaim } from '@tenon/api'
import { PriceList } from '@tenon/ask/cost'
import type { SnapshotCatalogue } from '@tenon/ask'
import type { ClaimPrices } from '@tenon/operator'

export class Prices {
  /** According to the controller. */
  #current: ReadonlyMap<string, number> = new Map()
  /** The last price of a claim whose type is no longer in the catalogue (console.md, trap 2). */
  readonly #last = new Map<string, number>()
  /** Of Nodes without a NodeClaim. */
  #paid: ReadonlyMap<string, number> = new Map()
  #list: PriceList | undefined
  #currency: string | undefined

  get currency(): string | undefined {
    return this.#currency
  }

  /** @returns names of claims whose price has changed. */
  update({ nodeClaims, currency }: ClaimPrices): readonly string[] {
    const current = new Map(nodeClaims.map(({ name, pricePerHour }) => [name, pricePerHour]))
    const changed = [...current].flatMap(([name, price]) => (this.#last.get(name) === price ? [] : [name]))
    this.#current = current
    for (const [name, price] of current) this.#last.set(name, price)
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
    if (!this.#current.has(claim)) this.#last.delete(claim)
  }

  /** A claim costs nothing before its launch. */
  of(node: Node | undefined, claim: NodeClaim | undefined): number | undefined {
    const object = node ?? claim
    if (object === undefined) return undefined
    if (node === undefined && (claim?.status?.providerID ?? '') === '') return undefined
    const name = claim?.metadata.name
    const current = name === undefined ? undefined : this.#current.get(name)
    if (current !== undefined) return current
    const listed = this.#list?.of(object)
    if (name === undefined) return this.#paid.get(node?.metadata.name ?? '') ?? listed
    if (listed === undefined) return this.#last.get(name)
    this.#last.set(name, listed)
    return listed
  }
}
