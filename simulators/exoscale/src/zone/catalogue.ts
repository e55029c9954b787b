/** Instance types and prices of the simulated cloud: those that Exoscale publishes, some with sizes that are guessed. */
import { pricesByType, publishedTypes } from '@tenon/provider-exoscale'
import { stableId } from './stable-id.ts'

export { publishedZones as zoneNames } from '@tenon/provider-exoscale'

/** One size of instance. */
export type InstanceType = Omit<(typeof publishedTypes)[number], 'id'> & { readonly id: string }

/** Every instance type of the cloud, whatever the zone. */
export const instanceTypes: readonly InstanceType[] = publishedTypes.map((type) => ({
  ...type,
  id: type.id ?? stableId(`instance-type/${type.name}`),
}))

/** Families that have GPUs; each has a quota of its own, named like the family. */
export const gpuFamilies: ReadonlySet<string> = new Set(
  instanceTypes.filter((type) => type.gpus > 0).map((type) => type.family),
)

const prices = pricesByType('EUR')

/** EUR per hour of one running instance; undefined when the price is not known. */
export function pricePerHour(family: string, size: string): number | undefined {
  return prices.get(`${family}.${size}`)
}
