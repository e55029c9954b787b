/** What can be launched while a cluster is played. */
import { type InstanceType, labels, type Offering, ownValue, type PricePerHour } from '@tenon/api'
import type { NodeDefaults } from '@tenon/provider'

/** Instance types with offerings and prices, as the provider listed them. */
export interface Catalogue {
  /** By name of the NodePool. */
  readonly byNodePool: ReadonlyMap<string, readonly InstanceType[]>
  /** Types of all other NodePools; default: none. */
  readonly others?: readonly InstanceType[]
  /** What node classes set on nodes, by name of the NodePool. */
  readonly defaults?: ReadonlyMap<string, NodeDefaults>
}

export function typesOf({ byNodePool, others = [] }: Catalogue, pool: string): readonly InstanceType[] {
  return byNodePool.get(pool) ?? others
}

/** All types, those of each NodePool in order of the pools' names. */
export function allTypes({ byNodePool, others = [] }: Catalogue): readonly InstanceType[] {
  const pools = [...byNodePool].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [...pools.flatMap(([, types]) => types), ...others]
}

/**
 * The price of a node according to its labels.
 * @returns undefined if the catalogue lacks the offering or its price.
 */
export function priceOfLabels(
  types: readonly InstanceType[],
  nodeLabels: Readonly<Record<string, string>>,
): PricePerHour {
  const name = ownValue(nodeLabels, labels.instanceType)
  const type = types.find((each) => each.name === name)
  return type?.offerings.find((offering) => isOffering(offering, nodeLabels))?.pricePerHour
}

function isOffering(offering: Offering, nodeLabels: Readonly<Record<string, string>>): boolean {
  return [labels.zone, labels.capacityType].every((key) => {
    const offered = offering.requirements.find((each) => each.key === key)?.values ?? []
    const value = ownValue(nodeLabels, key)
    return value === undefined || offered.length === 0 || offered.includes(value)
  })
}
