/**
 * Price per hour in the provider's currency, from 0 (free) to {@link mostPricePerHour}. Undefined if the price
 * is unknown: such an offering is neither free nor expensive, and must not enter a calculation.
 */
export type PricePerHour = number | undefined

/** A higher price is an error in a catalogue. Sums of prices below it stay exact enough to compare. */
export const mostPricePerHour = 1e9

/** Whether a catalogue, an overlay or a price list may contain this price. */
export function isKnownPrice(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= mostPricePerHour
}

/** Orders cheapest first. Unknown prices come last and are equal to each other. */
export function comparePrices(a: PricePerHour, b: PricePerHour): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  return a - b
}

/** The lowest known price; undefined if none is known. */
export function lowestPrice(prices: Iterable<PricePerHour>): PricePerHour {
  let lowest: PricePerHour
  for (const price of prices) if (comparePrices(price, lowest) < 0) lowest = price
  return lowest
}

/**
 * A price or a sum of prices with `digits` decimals.
 * @param unknown printed for an unknown price, so that it does not look like 0.
 */
export function priceText(price: PricePerHour, unknown = '?', digits = 4): string {
  return price === undefined ? unknown : price.toFixed(digits)
}

/** The sum of the known prices, and the number of unknown ones. */
export interface PriceSum {
  readonly pricePerHour: number
  readonly unpriced: number
}

export function sumOfPrices(prices: Iterable<PricePerHour>): PriceSum {
  let pricePerHour = 0
  let unpriced = 0
  for (const price of prices) {
    if (price === undefined) unpriced++
    else pricePerHour += price
  }
  return { pricePerHour, unpriced }
}
