import type { InstanceType } from '@tenon/api'
import type { CloudProvider } from '@tenon/provider'

/** The provider, with nothing available to the NodePools that may not launch now. */
export function soldOutProvider(
  provider: CloudProvider,
  isSoldOut: (pool: string) => boolean,
): CloudProvider {
  /** The same answer for the same type is the same object: decisions keep types. */
  const known = new WeakMap<InstanceType, InstanceType>()
  const soldOut = (type: InstanceType): InstanceType => {
    const offerings = type.offerings.map((offering) => ({ ...offering, available: false }))
    const made = known.get(type) ?? { ...type, offerings }
    known.set(type, made)
    return made
  }
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) => {
    const types = await provider.getInstanceTypes(pool, signal)
    return isSoldOut(pool.metadata.name) ? types.map(soldOut) : types
  }
  // A proxy, so that nothing a provider offers, optional parts included, can be forgotten here.
  return new Proxy(provider, {
    get(target, key) {
      if (key === 'getInstanceTypes') return getInstanceTypes
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
