import type { InstanceType } from '@tenon/api'
import { diskSizeGib, kubeletSettings } from '../nodeclass/settings.ts'
import type { ExoscaleNodeClassSpec } from '../nodeclass/types.ts'
import { instanceTypesOf } from './instance-types.ts'
import { pricesByType } from './prices.ts'
import { publishedTypes } from './published-catalogue.ts'

/** The built-in numbers are the same in every currency. */
const prices = pricesByType('EUR')

const unsized: ReadonlySet<string> = new Set(
  publishedTypes.filter(({ isSizePublished }) => !isSizePublished).map(({ name }) => name),
)

/**
 * The types of a node class in a zone, as published, without asking the cloud. Types whose sizes are not published have
 * no capacity.
 */
export function publishedInstanceTypes(
  zone: string,
  spec: ExoscaleNodeClassSpec = {},
  hasGpuDriver = false,
): readonly InstanceType[] {
  const entries = publishedTypes
    .filter(({ zones }) => zones.includes(zone))
    .map((type) => ({
      ...type,
      id: type.id ?? type.name,
      pricePerHour: prices.get(type.name),
    }))
  const { kubeReserved, systemReserved } = kubeletSettings(spec)
  const types = instanceTypesOf(entries, {
    zone,
    diskSizeGib: diskSizeGib(spec),
    kubeReserved,
    systemReserved,
    unavailability: () => undefined,
    hasGpuDriver,
  })
  return types.map((type) => (unsized.has(type.name) ? { ...type, capacity: {} } : type))
}
