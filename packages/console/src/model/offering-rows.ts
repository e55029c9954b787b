import { labels, type Offering } from '@tenon/api'
import type { SnapshotCatalogue } from '@tenon/ask'
import { rfc3339 } from '@tenon/runtime'
import { present } from './facts.ts'
import type { OfferingRow } from './view.ts'

export function offeringRows(catalogues: readonly SnapshotCatalogue[]): readonly OfferingRow[] {
  return catalogues.flatMap(({ nodePools, instanceTypes }, at) =>
    (instanceTypes ?? []).flatMap(({ name, offerings }) =>
      offerings.map((offering) => offeringRow(offering, name, { nodePools, at })),
    ),
  )
}

function offeringRow(
  { requirements, pricePerHour, available, unavailability }: Offering,
  instanceType: string,
  { nodePools, at }: { readonly nodePools: readonly string[]; readonly at: number },
): OfferingRow {
  const of = (key: string) => requirements.find((each) => each.key === key)?.values?.[0] ?? ''
  const [zone, capacityType] = [of(labels.zone), of(labels.capacityType)]
  return {
    id: `${at}/${instanceType}/${zone}/${capacityType}`,
    nodePools,
    instanceType,
    zone,
    capacityType,
    ...present('pricePerHour', pricePerHour),
    available,
    ...present('because', unavailability?.because),
    ...present('until', unavailability?.untilMs === undefined ? undefined : rfc3339(unavailability.untilMs)),
  }
}
