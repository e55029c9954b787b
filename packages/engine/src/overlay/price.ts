import { mostPricePerHour, type PricePerHour } from '@tenon/api'

/**
 * A price per hour under an overlay.
 * @param change an unsigned number replaces the price, a signed one is added to it, and a signed
 * percentage changes it by that part of it. The result is from 0 to {@link mostPricePerHour}; of a price
 * that is not known it is not known either, unless the overlay replaces the price or takes all of it off.
 */
export function overlaidPrice(pricePerHour: PricePerHour, change: string): PricePerHour {
  if (!/^[+-]/.test(change)) return bounded(Number(change))
  const isPercentage = change.endsWith('%')
  const by = Number(isPercentage ? change.slice(0, -1) : change)
  if (isPercentage && by <= -100) return 0
  if (pricePerHour === undefined) return undefined
  return bounded(isPercentage ? pricePerHour * (1 + by / 100) : pricePerHour + by)
}

const bounded = (pricePerHour: number): number => Math.min(mostPricePerHour, Math.max(0, pricePerHour))
