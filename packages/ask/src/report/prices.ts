/** Prices that a user gives, in place of those of the provider (adoption.md 1). */
import type { PriceList } from '@tenon/api'
import type { Snapshot } from '../snapshot/snapshot.ts'

/**
 * The snapshot with the prices of a list, for every zone and capacity type of an instance type. Types that the list
 * lacks have an unknown price: prices of two sources may be in two currencies, or of two contracts.
 */
export function withPriceList(snapshot: Snapshot, { currency, pricesPerHour }: PriceList): Snapshot {
  const { priceUnit: _, ...cloud } = snapshot.cloud
  return {
    ...snapshot,
    cloud: { ...cloud, ...(currency !== undefined && { priceUnit: currency }) },
    catalogues: snapshot.catalogues.map((catalogue) => ({
      ...catalogue,
      instanceTypes: catalogue.instanceTypes?.map((type) => ({
        ...type,
        offerings: type.offerings.map(({ surchargePerHour: _surcharge, ...offering }) => ({
          ...offering,
          pricePerHour: pricesPerHour.get(type.name),
        })),
      })),
    })),
  }
}
