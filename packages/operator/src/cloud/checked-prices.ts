/** Prices of a catalogue are checked where they come in: what is no price is not known. */
import { type InstanceType, isKnownPrice, mostPricePerHour, type Offering } from '@tenon/api'
import { type CloudProvider, decorated } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'

/** The provider with every price a number from 0 to {@link mostPricePerHour}, or not known, which is logged. */
export function checkedPrices<T extends Pick<CloudProvider, 'getInstanceTypes'>>(
  provider: T,
  logger: Pick<Logger, 'error'>,
): T {
  // The same answer for the same type is the same object: decisions keep types.
  const checked = new WeakMap<InstanceType, InstanceType>()
  const check = (type: InstanceType): InstanceType => {
    const known = checked.get(type)
    if (known !== undefined) return known
    const wrong = type.offerings.filter((offering) => !isReadable(offering))
    const result = wrong.length === 0 ? type : withoutWrongPrices(type)
    if (wrong.length > 0)
      logger.error('ignored invalid prices', {
        'instance-type': type.name,
        prices: wrong.map(({ pricePerHour }) => String(pricePerHour)).join(', '),
        allowed: `0 to ${mostPricePerHour}`,
      })
    checked.set(type, result)
    return result
  }
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) => {
    const types = await provider.getInstanceTypes(pool, signal)
    return types.some((type) => check(type) !== type) ? types.map(check) : types
  }
  return decorated(provider, { getInstanceTypes })
}

const isReadable = ({ pricePerHour }: Offering): boolean =>
  pricePerHour === undefined || isKnownPrice(pricePerHour)

function withoutWrongPrices(type: InstanceType): InstanceType {
  const offerings = type.offerings.map((offering) =>
    isReadable(offering) ? offering : { ...offering, pricePerHour: undefined },
  )
  return { ...type, offerings }
}
