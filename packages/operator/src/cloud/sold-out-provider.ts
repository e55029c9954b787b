import type { InstanceType, Unavailability } from '@tenon/api'
import { type CloudProvider, decorated } from '@tenon/provider'

/**
 * The provider, with nothing available to the NodePools that may not launch now.
 * @param whyNot why a NodePool may not launch; undefined when it may.
 */
export function soldOutProvider(
  provider: CloudProvider,
  whyNot: (pool: string) => Unavailability | undefined,
): CloudProvider {
  /** The same answer for the same type is the same object: decisions keep types. */
  const known = new WeakMap<InstanceType, { readonly why: string; readonly soldOut: InstanceType }>()
  const soldOut = (type: InstanceType, unavailability: Unavailability): InstanceType => {
    const why = JSON.stringify(unavailability)
    const made = known.get(type)
    if (made?.why === why) return made.soldOut
    const offerings = type.offerings.map((offering) =>
      offering.available ? { ...offering, available: false, unavailability } : offering,
    )
    const fresh = { why, soldOut: { ...type, offerings } }
    known.set(type, fresh)
    return fresh.soldOut
  }
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) => {
    const types = await provider.getInstanceTypes(pool, signal)
    const why = whyNot(pool.metadata.name)
    return why === undefined ? types : types.map((type) => soldOut(type, why))
  }
  return decorated(provider, { getInstanceTypes })
}
