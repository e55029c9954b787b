/**
 * Instance types and prices of the simulated cloud: those that Exoscale publishes, some with assumed sizes.
 */
import { pricesByType, publishedTypes } from '@tenon/provider-exoscale'
import { stableId } from './stable-id.ts'

export { publishedZones as zoneNames } from '@tenon/provider-exoscale'

export type InstanceType = Omit<(typeof publishedTypes)[number], 'id'> & { readonly id: string }

/** Every instance type of the cloud, in any zone. */
export const instanceTypes: readonly InstanceType[] = publishedTypes.map((type) => ({
  ...type,
  id: type.id ?? stableId(`instance-type/${type.name}`),
}))

/** GPU families; each has its own quota with the family's name. */
export const gpuFamilies: ReadonlySet<string> = new Set(
  instanceTypes.filter((type) => type.gpus > 0).map((type) => type.family),
)

const prices = pricesByType('EUR')

/** EUR per hour of one running instance; undefined if the price is unknown. */
export function pricePerHour(family: string, size: string): number | undefined {
  return prices.get(`${family}.${size}`)
}
