import { pricesByType } from '@tenon/provider-exoscale'

const prices = pricesByType('EUR')

/** EUR per hour of one running instance; undefined when the price is not known. */
export function pricePerHour(family: string, size: string): number | undefined {
  return prices.get(`${family}.${size}`)
}
