/**
 * Caches packings. Consolidation packs the same few sets of pods again and again, as most nodes do not change between two
 * searches.
 */
import type { PricePerHour } from '@tenon/api'
import type { TypeRow } from '../claims/pool-template.ts'
import type { Amounts } from '../pods/resource-space.ts'
import { type Effort, pack, type Packing } from './packing.ts'
import type { Bin, Item } from './resource-prices.ts'

/** Maximum packings in each of the two generations of the cache. */
const mostKept = 10_000
/** Larger packings come from provisioning, where they do not repeat, so they are not cached. */
const mostPods = 200
/** Maximum lists of bins with an id. Each change of prices makes new lists. */
const mostLists = 200

/** A type with its price. */
interface PricedRow {
  readonly row: TypeRow
  readonly pricePerHour: PricePerHour
}

/** Types as bins. */
export interface BinList {
  /** Equal for equal lists. */
  readonly id: number
  readonly bins: readonly Bin[]
  /** The row of each bin. */
  readonly rows: readonly TypeRow[]
}

/** Kept from one decision to the next. It does not change decisions. */
export class PackingCache {
  /** By packed items. The generation that was not used recently is dropped first. */
  #young = new Map<string, Packing | undefined>()
  #old: ReadonlyMap<string, Packing | undefined> = new Map()
  readonly #ids = new Map<string, number>()
  readonly #lists = new WeakMap<readonly PricedRow[], Map<string, BinList>>()
  #nextId = 0

  /**
   * The rows with a known price and with room besides daemon pods.
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
   * Like {@link pack}.
   * @param items sorted by amounts, without equal amounts.
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
    // A packing that the work limit cut short is not cached.
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
      // Ids are not reused, so packings of forgotten lists are never found again.
      if (this.#ids.size >= mostLists) this.#ids.clear()
      id = this.#nextId++
      this.#ids.set(key, id)
    }
    return id
  }
}
