import { mostPricePerHour, type PricePerHour } from '@tenon/api'

/**
 * A price per hour under an overlay.
 * @param change an unsigned number replaces the price, a signed number is added, and a signed percentage is a part of
 * the price to add. The result is between 0 and {@link mostPricePerHour}. An unknown price stays unknown, unless it is
 * replaced or reduced by 100 %.
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
