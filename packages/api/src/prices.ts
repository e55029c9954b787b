/**
 * Price per hour in the provider's currency, from 0 (free) to {@link mostPricePerHour}. Undefined when the
 * price is not known: such an offering is neither free nor expensive, and nothing can be calculated with it.
 */
export type PricePerHour = number | undefined

/** A price above this is an error in a catalogue: sums of prices below it stay exact enough to compare. */
export const mostPricePerHour = 1e9

/** Whether a catalogue, an overlay or a price list may give this as a known price. */
export function isKnownPrice(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= mostPricePerHour
}

/** Orders the cheapest first; prices that are not known come last and are equal to one another. */
export function comparePrices(a: PricePerHour, b: PricePerHour): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  return a - b
}

/** The lowest known price; undefined when none is known. */
export function lowestPrice(prices: Iterable<PricePerHour>): PricePerHour {
  let lowest: PricePerHour
  for (const price of prices) if (comparePrices(price, lowest) < 0) lowest = price
  return lowest
}

/** A price, or a sum of prices, with so many digits; `unknown` stands for one that is not known, which is no price of 0. */
export function priceText(price: PricePerHour, unknown = '?', digits = 4): string {
  return price === undefined ? unknown : price.toFixed(digits)
}

/** What several things cost together: the known prices, and how many prices are not known. */
export interface PriceSum {
  readonly pricePerHour: number
  readonly unpriced: number
}

/** Adds up prices and counts those that are not known. */
export function sumOfPrices(prices: Iterable<PricePerHour>): PriceSum {
  let pricePerHour = 0
  let unpriced = 0
  for (const price of prices) {
    if (price === undefined) unpriced++
    else pricePerHour += price
  }
  return { pricePerHour, unpriced }
}
