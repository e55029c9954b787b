import type { InstanceType } from '@tenon/api'
import { diskSizeGib, kubeletSettings } from '../nodeclass/settings.ts'
import type { ExoscaleNodeClassSpec } from '../nodeclass/types.ts'
import { instanceTypesOf } from './instance-types.ts'
import { pricesByType } from './prices.ts'

/** A machine shape as the vendor publishes it. */
export interface PublishedType {
  readonly id: string
  readonly name: string
  readonly family: string
  readonly size: string
  readonly cpus: number
  readonly memoryBytes: number
  readonly gpus: number
  readonly zones: readonly string[]
}

/** The built-in numbers are the same in every currency. */
const prices = pricesByType('EUR')

/** What a node class would be offered in a zone, as far as it is published; the cloud is not asked. */
export function publishedInstanceTypes(
  types: readonly PublishedType[],
  zone: string,
  spec: ExoscaleNodeClassSpec = {},
): readonly InstanceType[] {
  const entries = types
    .filter(({ zones }) => zones.includes(zone))
    .map((type) => ({
      ...type,
      pricePerHour: prices.get(type.name),
    }))
  const { kubeReserved, systemReserved } = kubeletSettings(spec)
  return instanceTypesOf(entries, {
    zone,
    diskSizeGib: diskSizeGib(spec),
    kubeReserved,
    systemReserved,
    unavailability: () => undefined,
  })
}
