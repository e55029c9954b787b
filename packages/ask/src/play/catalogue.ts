/** What can be bought while a cluster is played. */
import { type InstanceType, labels, type Offering, ownValue, type PricePerHour } from '@tenon/api'
import type { NodeDefaults } from '@tenon/provider'

/** Instance types with offerings and prices, as the provider told them. */
export interface Catalogue {
  /** Types of each NodePool, by its name. */
  readonly byNodePool: ReadonlyMap<string, readonly InstanceType[]>
  /** Types of every other NodePool; none unless given. */
  readonly others?: readonly InstanceType[]
  /** What node classes give the nodes of NodePools, by the pools' names. */
  readonly defaults?: ReadonlyMap<string, NodeDefaults>
}

/** What a NodePool can buy. */
export function typesOf({ byNodePool, others = [] }: Catalogue, pool: string): readonly InstanceType[] {
  return byNodePool.get(pool) ?? others
}

/** Every type of the catalogue, those of each NodePool in the order of the pools' names. */
export function allTypes({ byNodePool, others = [] }: Catalogue): readonly InstanceType[] {
  const pools = [...byNodePool].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [...pools.flatMap(([, types]) => types), ...others]
}

/**
 * The price of what a node says it is, by its labels.
 * @returns undefined when the catalogue has no such offering, or no price of it.
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
