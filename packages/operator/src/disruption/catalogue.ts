/** NodePools and their instance types, read once for a pass of the disruption loop. */
import type { Logger } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import {
  type InstanceType,
  labels,
  type NodePool,
  type Offering,
  type PricePerHour,
  type Requirement,
  ownValue,
} from '@tenon/api'
import { isExpectedFailure } from '../cloud/expected-failures.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly provider: Pick<CloudProvider, 'getInstanceTypes'>
  readonly logger: Logger
}

/** A NodePool of this provider; without types when they cannot be listed now. */
interface ListedPool {
  readonly pool: NodePool
  /** By name. NodePools that offer the same types share a map (scale.md 2). */
  readonly types: ReadonlyMap<string, InstanceType>
}

export type Catalogue = ReadonlyMap<string, ListedPool>

export class CatalogueReader {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Every NodePool that this provider serves, by name, ready or not. */
  async read(signal: AbortSignal): Promise<Catalogue> {
    const { caches, state, provider, logger } = this.#deps
    const pools = caches.nodePools.list().filter((pool) => state.isManaged(pool))
    const typesByName = sharedByName()
    const listed = await Promise.all(
      pools.map(async (pool): Promise<readonly [string, ListedPool]> => {
        const { name } = pool.metadata
        try {
          const types = await provider.getInstanceTypes(pool, signal)
          return [name, { pool, types: typesByName(types) }]
        } catch (error) {
          if (signal.aborted) throw error
          const fields = { NodePool: { name }, error }
          if (isExpectedFailure(error)) logger.warn('listing instance types failed', fields)
          else logger.error('listing instance types failed', fields)
          return [name, { pool, types: new Map() }]
        }
      }),
    )
    return new Map(listed)
  }
}

/** Makes maps by name, one for lists of the same types. */
function sharedByName(): (types: readonly InstanceType[]) => ReadonlyMap<string, InstanceType> {
  const made: ReadonlyMap<string, InstanceType>[] = []
  return (types) => {
    const known = made.find(
      (each) => each.size === types.length && types.every((type) => each.get(type.name) === type),
    )
    if (known !== undefined) return known
    const byName = new Map(types.map((type) => [type.name, type]))
    made.push(byName)
    return byName
  }
}

/**
 * Price of a node per hour: that of the first offering of its type in its zone and with its capacity type, available or
 * not. Undefined if there is none (disruption.md 4).
 */
export function nodePrice(
  type: InstanceType | undefined,
  nodeLabels: Readonly<Record<string, string>>,
): PricePerHour {
  return nodeOffering(type, nodeLabels)?.pricePerHour
}

/** The first offering of the type in the node's zone and with its capacity type, available or not. */
export function nodeOffering(
  type: InstanceType | undefined,
  nodeLabels: Readonly<Record<string, string>>,
): Offering | undefined {
  const has = (requirements: readonly Requirement[], key: string) =>
    requirements.some((each) => each.key === key && each.values?.[0] === ownValue(nodeLabels, key))
  return type?.offerings.find(
    ({ requirements }) => has(requirements, labels.zone) && has(requirements, labels.capacityType),
  )
}
