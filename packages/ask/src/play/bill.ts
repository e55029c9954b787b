/** The cost of instances: prices integrated over their lifetimes. */
import type { PricePerHour } from '@tenon/api'

const hourMs = 3_600_000

export interface BilledHour {
  /** Unix milliseconds. */
  readonly startMs: number
  /** Without instances of unknown price. */
  readonly cost: number
  readonly instanceHours: number
}

/** Integrates prices and instance counts over time. */
export class Bill {
  readonly #startMs: number
  #atMs: number
  #pricePerHour = 0
  /** Instance counts by price: a running sum of prices would accumulate rounding errors. */
  readonly #byPrice = new Map<number, number>()
  #instances = 0
  readonly #hours: { cost: number; instanceHours: number }[] = []
  #peakPricePerHour = 0
  #peakInstances = 0
  #unpriced = 0

  constructor(startMs: number) {
    this.#startMs = startMs
    this.#atMs = startMs
  }

  /** Adds an instance. */
  add(nowMs: number, price: PricePerHour): void {
    this.#change(nowMs, price, 1)
    if (price === undefined) this.#unpriced++
  }

  /** Removes an instance. */
  remove(nowMs: number, price: PricePerHour): void {
    this.#change(nowMs, price, -1)
  }

  /** Integrates up to `nowMs`. */
  advance(nowMs: number): void {
    while (this.#atMs < nowMs) {
      const index = Math.floor((this.#atMs - this.#startMs) / hourMs)
      const end = Math.min(nowMs, this.#startMs + (index + 1) * hourMs)
      const hours = (end - this.#atMs) / hourMs
      const hour = (this.#hours[index] ??= { cost: 0, instanceHours: 0 })
      hour.cost += this.#pricePerHour * hours
      hour.instanceHours += this.#instances * hours
      this.#atMs = end
    }
  }

  get hours(): readonly BilledHour[] {
    return this.#hours.map((hour, index) => ({ startMs: this.#startMs + index * hourMs, ...hour }))
  }

  get cost(): number {
    return this.#hours.reduce((sum, { cost }) => sum + cost, 0)
  }

  get instanceHours(): number {
    return this.#hours.reduce((sum, { instanceHours }) => sum + instanceHours, 0)
  }

  get peakPricePerHour(): number {
    return this.#peakPricePerHour
  }

  get peakInstances(): number {
    return this.#peakInstances
  }

  /** Current price of all instances. */
  get pricePerHour(): number {
    return this.#pricePerHour
  }

  /** Current number of instances. */
  get instances(): number {
    return this.#instances
  }

  /** Instances of unknown price so far; they are in no sum. */
  get unpriced(): number {
    return this.#unpriced
  }

  #change(nowMs: number, price: PricePerHour, count: number): void {
    this.advance(nowMs)
    this.#instances += count
    if (price !== undefined) {
      const left = (this.#byPrice.get(price) ?? 0) + count
      if (left === 0) this.#byPrice.delete(price)
      else this.#byPrice.set(price, left)
      this.#pricePerHour = 0
      for (const [each, number] of this.#byPrice) this.#pricePerHour += each * number
    }
    this.#peakPricePerHour = Math.max(this.#peakPricePerHour, this.#pricePerHour)
    this.#peakInstances = Math.max(this.#peakInstances, this.#instances)
  }
}
