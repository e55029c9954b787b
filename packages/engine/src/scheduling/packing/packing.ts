/**
 * Packs items of several sizes into bins of several types at a low total price. Fills bins one after the other, each
 * time with the type and filling of the least waste, measured in resource prices. Then empties the worst bins and packs
 * their items in other ways.
 */
import type { Amounts } from '../pods/resource-space.ts'
import { worthiestFilling } from './filling.ts'
import { type Bin, type Item, type Prices, resourcePrices } from './resource-prices.ts'

/** A bin and its items. */
interface PackedBin {
  /** Index of the bin's type. */
  readonly bin: number
  /** The count of each item. */
  readonly counts: Int32Array
}

export interface Packing {
  readonly bins: readonly PackedBin[]
  readonly pricePerHour: number
}

/** Limits the work; one unit is about one comparison of a size with a room. */
export class Effort {
  #left: number
  readonly #shouldStop: () => boolean
  #sinceAsked = 0

  constructor(units: number, shouldStop: () => boolean) {
    this.#left = units
    this.#shouldStop = shouldStop
  }

  spend(units: number): void {
    this.#left -= units
    this.#sinceAsked += units
    if (this.#sinceAsked < 100_000) return
    this.#sinceAsked = 0
    if (this.#shouldStop()) this.#left = 0
  }

  get isSpent(): boolean {
    return this.#left <= 0
  }
}

/** How much a filling prefers large items to items with the proportions of the free room. */
const tastes = [0, 1, 0.5, 2, 0.25] as const

/** Maximum item sizes for which mixtures are computed, as the time grows with their square. */
const mostMixed = 64

/** The cheapest packing that was found; undefined if some item fits no bin or the work limit was reached. */
export function pack(items: readonly Item[], bins: readonly Bin[], effort: Effort): Packing | undefined {
  const packer = new Packer(items, bins, effort)
  const wanted = Int32Array.from(items, ({ count }) => count)
  let best = packer.packInSomeTaste(wanted)
  if (best === undefined) return undefined
  const goodEnough = packer.leastPrice * 1.002
  if (best.pricePerHour <= goodEnough) return best
  if (items.length <= mostMixed) {
    const mixed = packer.packMixed(wanted)
    if (mixed !== undefined && mixed.pricePerHour < best.pricePerHour) best = mixed
  }
  for (let round = 0; !effort.isSpent && round < 4 * tastes.length; round++) {
    if (best.pricePerHour <= goodEnough) break
    best = packer.repacked(best, tastes[round % tastes.length] as number, round) ?? best
  }
  return best
}

class Packer {
  readonly #items: readonly Item[]
  readonly #bins: readonly Bin[]
  readonly #effort: Effort
  #worth: Float64Array
  /** Bins that some filling may want, largest first; most bins are similar. */
  readonly #candidates: readonly number[]
  readonly #size: number
  /** A lower bound of the price: what the items cost if bins were sold in parts. */
  readonly leastPrice: number

  constructor(items: readonly Item[], bins: readonly Bin[], effort: Effort) {
    this.#items = items
    this.#bins = bins
    this.#effort = effort
    this.#size = items[0]?.amounts.length ?? 0
    const demand = new Float64Array(this.#size)
    for (const { amounts, count } of items)
      for (let i = 0; i < demand.length; i++)
        demand[i] = (demand[i] as number) + count * (amounts[i] as number)
    const { prices } = resourcePrices(bins, demand)
    this.#worth = Float64Array.from(items, ({ amounts }) =>
      amounts.reduce((sum, amount, i) => sum + amount * (prices[i] as number), 0),
    )
    this.leastPrice = items.reduce((sum, { count }, item) => sum + count * (this.#worth[item] as number), 0)
    this.#candidates = undominated(bins)
  }

  packInSomeTaste(wanted: Int32Array): Packing | undefined {
    let best: Packing | undefined
    for (const taste of tastes) {
      const packing = this.pack(wanted, taste)
      if (packing !== undefined && (best === undefined || packing.pricePerHour < best.pricePerHour))
        best = packing
      if (this.#effort.isSpent) break
    }
    return best
  }

  /**
   * Collects fillings until none would lower the price of their best mixture. Uses each as often as its whole share in
   * the mixture, and packs the remaining items.
   */
  packMixed(wanted: Int32Array): Packing | undefined {
    const worthBefore = this.#worth
    const demand = Float64Array.from(wanted)
    const known = new Map<string, PackedBin>()
    this.#collectFirst(wanted, known)
    let mixture = this.#mixture(known, demand)
    for (let round = 0; round < 60 && !this.#effort.isSpent; round++) {
      this.#worth = mixture.prices
      const before = known.size
      this.#collectWorthy(wanted, known)
      if (known.size === before) break
      mixture = this.#mixture(known, demand)
    }
    this.#worth = worthBefore
    const left = wanted.slice()
    const packed: PackedBin[] = []
    let pricePerHour = 0
    for (const [index, filling] of [...known.values()].entries()) {
      const copies = Math.floor((mixture.bins[index] as number) + 1e-6)
      for (let copy = 0; copy < copies && isWithin(filling.counts, left); copy++) {
        for (const [item, count] of filling.counts.entries()) left[item] = (left[item] as number) - count
        packed.push(filling)
        pricePerHour += this.#bins[filling.bin]?.pricePerHour ?? 0
      }
    }
    if (left.every((count) => count === 0)) return { bins: packed, pricePerHour }
    const rest = this.packInSomeTaste(left)
    return rest && { bins: [...packed, ...rest.bins], pricePerHour: pricePerHour + rest.pricePerHour }
  }

  /** The best mixture of fillings, in fractions, and the worth of each item in it. */
  #mixture(known: ReadonlyMap<string, PackedBin>, demand: Float64Array): Prices {
    this.#effort.spend(known.size * demand.length * demand.length)
    const fillings = [...known.values()].map(({ bin, counts }) => ({
      room: Float64Array.from(counts),
      pricePerHour: this.#bins[bin]?.pricePerHour ?? 0,
    }))
    return resourcePrices(fillings, demand)
  }

  /** The initial fillings: one per taste, and one per item alone. */
  #collectFirst(wanted: Int32Array, known: Map<string, PackedBin>): void {
    const add = (bin: number, left: Int32Array, taste: number) => {
      const counts = this.#filling((this.#bins[bin] as Bin).room, left, taste)
      if (counts !== undefined) known.set(`${bin} ${counts.join(' ')}`, { bin, counts })
    }
    for (const bin of this.#candidates) {
      for (const taste of tastes) add(bin, wanted, taste)
      for (const [item, count] of wanted.entries()) {
        if (count === 0) continue
        const alone = new Int32Array(wanted.length)
        alone[item] = count
        add(bin, alone, 0)
      }
      if (this.#effort.isSpent) return
    }
  }

  /** Adds fillings that are worth more than their price, at most one per type of bin. */
  #collectWorthy(wanted: Int32Array, known: Map<string, PackedBin>): void {
    for (const bin of this.#candidates) {
      if (this.#effort.isSpent) return
      const { room, pricePerHour } = this.#bins[bin] as Bin
      const counts = worthiestFilling(
        { room, items: this.#items, worth: this.#worth, left: wanted },
        pricePerHour * (1 + 1e-6),
        (units) => this.#effort.spend(units),
      )
      if (counts !== undefined) known.set(`${bin} ${counts.join(' ')}`, { bin, counts })
    }
  }

  /** @param taste see {@link tastes}. */
  pack(wanted: Int32Array, taste: number): Packing | undefined {
    const left = wanted.slice()
    const packed: PackedBin[] = []
    let pricePerHour = 0
    let total = left.reduce((sum, count) => sum + count, 0)
    while (total > 0) {
      const next = this.#bestFilling(left, taste)
      if (next === undefined || this.#effort.isSpent) return undefined
      let copies = Number.POSITIVE_INFINITY
      for (const [item, count] of next.counts.entries())
        if (count > 0) copies = Math.min(copies, Math.floor((left[item] as number) / count))
      for (let copy = 0; copy < copies; copy++) packed.push(next)
      for (const [item, count] of next.counts.entries()) {
        left[item] = (left[item] as number) - copies * count
        total -= copies * count
      }
      pricePerHour += copies * (this.#bins[next.bin]?.pricePerHour ?? 0)
    }
    return { bins: packed, pricePerHour }
  }

  /** The packing with its worst bins packed again; undefined if that is not cheaper. */
  repacked({ bins, pricePerHour }: Packing, taste: number, round: number): Packing | undefined {
    const byWaste = bins
      .map((packed, order) => ({ packed, order, waste: this.#wasteOf(packed) }))
      .toSorted((a, b) => b.waste - a.waste || a.order - b.order)
    // The number of bins varies, and their range moves down the list from round to round.
    const size = Math.max(2, Math.ceil((bins.length * (1 + (round % 4))) / 8))
    // All bins together were packed with each taste already.
    if (size >= bins.length) return undefined
    const start = Math.min(byWaste.length - size, Math.floor(round / 4) * Math.floor(size / 2))
    const dissolved = byWaste.slice(start, start + size)
    const wanted = new Int32Array(this.#items.length)
    let before = 0
    for (const { packed } of dissolved) {
      for (const [item, count] of packed.counts.entries()) wanted[item] = (wanted[item] as number) + count
      before += this.#bins[packed.bin]?.pricePerHour ?? 0
    }
    const anew = this.pack(wanted, taste)
    if (anew === undefined || anew.pricePerHour >= before - 1e-9) return undefined
    const gone = new Set(dissolved.map(({ order }) => order))
    return {
      bins: [...bins.filter((_, order) => !gone.has(order)), ...anew.bins],
      pricePerHour: pricePerHour - before + anew.pricePerHour,
    }
  }

  #wasteOf({ bin, counts }: PackedBin): number {
    const price = this.#bins[bin]?.pricePerHour ?? 0
    return price - this.#worthOf(counts)
  }

  #worthOf(counts: Int32Array): number {
    let worth = 0
    for (let item = 0; item < counts.length; item++)
      worth += (counts[item] as number) * (this.#worth[item] as number)
    return worth
  }

  /** The type and filling with the most worth for their price. */
  #bestFilling(left: Int32Array, taste: number): PackedBin | undefined {
    let best: PackedBin | undefined
    let bestRatio = -1
    for (const bin of this.#candidates) {
      const { room, pricePerHour } = this.#bins[bin] as Bin
      const counts = this.#filling(room, left, taste)
      if (counts === undefined) continue
      const ratio = this.#worthOf(counts) / pricePerHour
      if (ratio > bestRatio + 1e-12) {
        bestRatio = ratio
        best = { bin, counts }
      }
      if (this.#effort.isSpent) break
    }
    return best
  }

  #filling(room: Amounts, left: Int32Array, taste: number): Int32Array | undefined {
    const counts = new Int32Array(left.length)
    const rest = room.slice()
    let isEmpty = true
    for (;;) {
      const item = this.#choice(room, rest, left, counts, taste)
      if (item < 0) break
      isEmpty = false
      // As many as leave the proportions of the free room about the same; at least one.
      this.#put(rest, counts, item, 1)
    }
    if (isEmpty) return undefined
    this.#exchangeForWorth(rest, left, counts)
    return counts
  }

  /** The next item: one of high worth with the proportions of the free room. */
  #choice(room: Amounts, rest: Amounts, left: Int32Array, counts: Int32Array, taste: number): number {
    let best = -1
    let bestScore = -1
    this.#effort.spend(left.length)
    for (let item = 0; item < left.length; item++) {
      if ((left[item] as number) <= (counts[item] as number)) continue
      const { amounts } = this.#items[item] as Item
      let along = 0
      let own = 0
      let isFitting = true
      for (let i = 0; i < amounts.length; i++) {
        const amount = amounts[i] as number
        if (amount > (rest[i] as number)) {
          isFitting = false
          break
        }
        const whole = room[i] as number
        if (whole <= 0) continue
        const share = amount / whole
        along += share * ((rest[i] as number) / whole)
        own += share * share
      }
      if (!isFitting) continue
      // The cosine of the angle between item and free room, weighted by the item's size.
      const score = (own > 0 ? along / Math.sqrt(own) : 0) * Math.pow(this.#worth[item] as number, taste)
      if (score > bestScore) {
        bestScore = score
        best = item
      }
    }
    return best
  }

  /** Exchanges single items as long as that raises the worth of the filling. */
  #exchangeForWorth(rest: Amounts, left: Int32Array, counts: Int32Array): void {
    for (let round = 0; round < 50; round++) {
      let bestGain = 1e-12
      let out = -1
      let into = -1
      this.#effort.spend(left.length * 4)
      for (let a = 0; a < counts.length; a++) {
        if ((counts[a] as number) === 0) continue
        for (let b = 0; b < counts.length; b++) {
          if (b === a || (left[b] as number) <= (counts[b] as number)) continue
          const gain = (this.#worth[b] as number) - (this.#worth[a] as number)
          if (gain <= bestGain || !this.#fitsInstead(rest, a, b)) continue
          bestGain = gain
          out = a
          into = b
        }
      }
      if (out < 0) return
      this.#put(rest, counts, out, -1)
      this.#put(rest, counts, into, 1)
      // The exchange may have left room for another small item.
      for (let item = 0; item < counts.length; item++)
        while ((left[item] as number) > (counts[item] as number) && this.#fits(rest, item))
          this.#put(rest, counts, item, 1)
    }
  }

  #put(rest: Amounts, counts: Int32Array, item: number, times: 1 | -1): void {
    const { amounts } = this.#items[item] as Item
    for (let i = 0; i < rest.length; i++) rest[i] = (rest[i] as number) - times * (amounts[i] as number)
    counts[item] = (counts[item] as number) + times
  }

  #fits(rest: Amounts, item: number): boolean {
    const { amounts } = this.#items[item] as Item
    for (let i = 0; i < rest.length; i++) if ((amounts[i] as number) > (rest[i] as number)) return false
    return true
  }

  #fitsInstead(rest: Amounts, out: number, into: number): boolean {
    const gone = this.#items[out] as Item
    const come = this.#items[into] as Item
    for (let i = 0; i < rest.length; i++)
      if ((come.amounts[i] as number) > (rest[i] as number) + (gone.amounts[i] as number)) return false
    return true
  }
}

function isWithin(counts: Int32Array, left: Int32Array): boolean {
  return counts.every((count, item) => count <= (left[item] as number))
}

/** Bins for which no cheaper bin has at least the same room. */
export function undominated(bins: readonly Bin[]): readonly number[] {
  const order = bins
    .map((_, index) => index)
    .toSorted((a, b) => (bins[a]?.pricePerHour ?? 0) - (bins[b]?.pricePerHour ?? 0) || a - b)
  const kept: number[] = []
  for (const index of order) {
    const { room } = bins[index] as Bin
    const isSurpassed = order.some((other) => {
      if (other === index) return false
      const bin = bins[other] as Bin
      const isCheaper =
        bin.pricePerHour < (bins[index]?.pricePerHour ?? 0) ||
        (bin.pricePerHour === bins[index]?.pricePerHour && other < index)
      return isCheaper && room.every((amount, i) => amount <= (bin.room[i] as number))
    })
    if (!isSurpassed) kept.push(index)
  }
  return kept.toReversed()
}
