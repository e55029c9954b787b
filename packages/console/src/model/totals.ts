/** Totals of rows that are added and removed. */
import { isInstance } from './rows.ts'
import type { NodeRow, PriceSum, Share } from './view.ts'

/** Prices are summed as integers in this unit, so that removing a row leaves no rounding error. */
const partsPerUnit = 1e9
const hoursPerMonth = 730

interface ResourceSum {
  used: number
  allocatable: number
  /** Number of rows with this value. */
  usedBy: number
  allocatableBy: number
}

export class Totals {
  #nodes = 0
  #pending = 0
  #drifted = 0
  #priced = 0
  #unpriced = 0
  #parts = 0
  readonly #resources = new Map<string, ResourceSum>()

  add(row: NodeRow): void {
    this.#count(row, 1)
  }

  subtract(row: NodeRow): void {
    this.#count(row, -1)
  }

  get nodes(): number {
    return this.#nodes
  }

  /** NodeClaims without a Node. */
  get pending(): number {
    return this.#pending
  }

  get drifted(): number {
    return this.#drifted
  }

  price(): PriceSum {
    // No rows cost 0; rows of unknown price have an unknown sum.
    if (this.#priced === 0 && this.#unpriced > 0) return { unpriced: this.#unpriced }
    const perHour = this.#parts / partsPerUnit
    return { perHour, perMonth: perHour * hoursPerMonth, unpriced: this.#unpriced }
  }

  resources(): Readonly<Record<string, Share>> {
    const shares = [...this.#resources].map(([name, sum]): [string, Share] => [
      name,
      {
        ...(sum.usedBy > 0 && { used: sum.used }),
        ...(sum.allocatableBy > 0 && { allocatable: sum.allocatable }),
      },
    ])
    return Object.fromEntries(shares.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }

  #count(row: NodeRow, by: 1 | -1): void {
    if (row.node === undefined) this.#pending += by
    else this.#nodes += by
    if (row.drifted) this.#drifted += by
    if (row.pricePerHour !== undefined) {
      this.#priced += by
      this.#parts += by * Math.round(row.pricePerHour * partsPerUnit)
    } else if (isInstance(row)) this.#unpriced += by
    if (row.node !== undefined)
      for (const [name, share] of Object.entries(row.resources)) this.#countResource(name, share, by)
  }

  #countResource(name: string, { used, allocatable }: Share, by: 1 | -1): void {
    const sum = this.#resources.get(name) ?? { used: 0, allocatable: 0, usedBy: 0, allocatableBy: 0 }
    this.#resources.set(name, sum)
    if (used !== undefined) {
      sum.used += by * used
      sum.usedBy += by
    }
    if (allocatable !== undefined) {
      sum.allocatable += by * allocatable
      sum.allocatableBy += by
    }
    if (sum.usedBy === 0 && sum.allocatableBy === 0) this.#resources.delete(name)
  }
}
