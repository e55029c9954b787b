/**
 * Packings that were found before. Looking for cheaper nodes asks about the same few sets of pods again and again:
 * nodes of one workload hold much the same, and stay as they are from one look to the next.
 */
import type { PricePerHour } from '@tenon/api'
import type { TypeRow } from '../claims/pool-template.ts'
import type { Amounts } from '../pods/resource-space.ts'
import { type Effort, pack, type Packing } from './packing.ts'
import type { Bin, Item } from './resource-prices.ts'

/** Of each generation; there are two. */
const mostKept = 10_000
/** More pods at once are those of a decision about what is launched, which does not come again. */
const mostPods = 200
/** Prices change now and then, and each set of resources has a list of its own. */
const mostLists = 200

/** A type with what it costs. */
interface PricedRow {
  readonly row: TypeRow
  readonly pricePerHour: PricePerHour
}

/** Types as something to fill. */
export interface BinList {
  /** Equal for lists that say the same. */
  readonly id: number
  readonly bins: readonly Bin[]
  /** The rows behind the bins. */
  readonly rows: readonly TypeRow[]
}

/** Kept by its owner from one decision to the next; it changes nothing of them. */
export class KnownPackings {
  /** By what is packed; those that were not asked for lately go first. */
  #young = new Map<string, Packing | undefined>()
  #old: ReadonlyMap<string, Packing | undefined> = new Map()
  readonly #ids = new Map<string, number>()
  readonly #lists = new WeakMap<readonly PricedRow[], Map<string, BinList>>()
  #nextId = 0

  /**
   * The rows that have a price and room beside their daemons.
   * @param demanded 1 for each resource that counts.
   */
  binsOf(priced: readonly PricedRow[], demanded: Amounts): BinList {
    const lists = this.#lists.get(priced) ?? new Map<string, BinList>()
    this.#lists.set(priced, lists)
    const key = demanded.join('')
    const known = lists.get(key)
    if (known !== undefined) return known
    const rows: TypeRow[] = []
    const bins: Bin[] = []
    for (const { row, pricePerHour } of priced) {
      if (pricePerHour === undefined || row.room.some((amount) => amount < 0)) continue
      rows.push(row)
      bins.push({ room: row.room.filter((_, i) => demanded[i] === 1), pricePerHour })
    }
    const list = { id: this.#idOf(bins), bins, rows }
    lists.set(key, list)
    return list
  }

  /**
   * As {@link pack}.
   * @param items in an order that depends on nothing but their amounts, each amount once.
   */
  pack(
    items: readonly Item[],
    { id, bins }: Pick<BinList, 'id' | 'bins'>,
    effort: Effort,
  ): Packing | undefined {
    if (items.reduce((sum, { count }) => sum + count, 0) > mostPods) return pack(items, bins, effort)
    let key = `${id}`
    for (const { amounts, count } of items) key += `;${count} ${amounts.join(' ')}`
    if (this.#young.has(key)) return this.#young.get(key)
    const isOld = this.#old.has(key)
    const packing = isOld ? this.#old.get(key) : pack(items, bins, effort)
    // What was found in a hurry is not the last word.
    if (isOld || !effort.isSpent) this.#keep(key, packing)
    return packing
  }

  #keep(key: string, packing: Packing | undefined): void {
    if (this.#young.size >= mostKept) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, packing)
  }

  #idOf(bins: readonly Bin[]): number {
    const key = bins.map(({ room, pricePerHour }) => `${pricePerHour} ${room.join(' ')}`).join(';')
    let id = this.#ids.get(key)
    if (id === undefined) {
      // Numbers are never given twice, so packings for lists that are forgotten are not found any more.
      if (this.#ids.size >= mostLists) this.#ids.clear()
      id = this.#nextId++
      this.#ids.set(key, id)
    }
    return id
  }
}
