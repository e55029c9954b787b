/** NodePools that may launch nodes, with the instance types that they offer. */
import type { InstanceType, LaunchScope, NodePool } from '@tenon/api'
import type { PoolInput } from '@tenon/engine'
import { type CloudProvider, isProviderError, type PoolRules } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import type { CapacityLearning } from '../../cloud/corrected-provider.ts'
import type { LaunchGuard } from '../../cloud/launch-guard.ts'
import { isExpectedFailure } from '../../cloud/expected-failures.ts'
import { validatePool } from '../../state/nodepools/pool-problems.ts'
import { canonicalPool } from '../../decide/canonical-keys.ts'
import { nodeDefaults } from '../../nodeclaim/creation/node-defaults.ts'
import { pauseSentence } from '../../state/pause.ts'
import type { PoolChoice } from '../../state/nodepools/observed-pools.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  /** The NodePools of this decision. */
  readonly pools: PoolChoice
  readonly state: Pick<ClusterState, 'brake' | 'isManaged' | 'readinessPauses' | 'stuckPools'>
  readonly provider: Pick<
    CloudProvider,
    'getInstanceTypes' | 'labelAliases' | 'nodeClasses' | 'nodeDefaults' | keyof PoolRules
  >
  readonly learning?: CapacityLearning
  readonly launchGuard: Pick<LaunchGuard, 'onTrial'>
  readonly logger: Logger
}

/** A NodePool with its instance types. */
export type Listing = Pick<PoolInput, 'nodePool' | 'instanceTypes' | 'defaults'>

export class EligiblePools {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** NodePools that may launch: managed, dynamic, ready, valid, not being deleted (scheduling.md 3), not stuck or paused. */
  list(): readonly NodePool[] {
    return eligiblePools(this.#deps)
  }

  /**
   * A NodePool with the types that its provider lists; none if it cannot list them now. Undefined until overlays are
   * evaluated for it: its types are unknown.
   */
  offered(pool: NodePool, signal: AbortSignal): Promise<Listing | undefined> {
    return listTypes(this.#deps, pool, signal, offeredTypes)
  }

  /** As {@link offered}, with each type no larger than its instances turned out to be. */
  expected(pool: NodePool, signal: AbortSignal): Promise<Listing | undefined> {
    return listTypes(this.#deps, pool, signal, expectedTypes)
  }

  /** Offerings that failed lately; one launch at a time tries each. */
  offeringsOnTrial(): readonly LaunchScope[] {
    return this.#deps.launchGuard.onTrial()
  }

  /** NodePools that cannot launch, and why, in the order of the cache. */
  unready(): readonly UnreadyPool[] {
    return unreadyPools(this.#deps)
  }
}

/** A NodePool that launches nothing now. */
export interface UnreadyPool {
  readonly nodePool: string
  readonly code: 'stuck' | 'invalid' | 'paused' | 'notReady' | 'observed' | 'deleting' | 'static'
  /** A clause without a full stop. */
  readonly because: string
}

function eligiblePools(deps: Dependencies): readonly NodePool[] {
  const stuck = deps.state.stuckPools()
  return deps.pools
    .list()
    .filter((pool) => deps.state.isManaged(pool) && obstacle(deps, stuck, pool) === undefined)
}

/** Why a NodePool of this provider cannot launch; undefined if it can. */
function obstacle(
  { pools, provider, state }: Dependencies,
  stuck: ReadonlySet<string>,
  pool: NodePool,
): Omit<UnreadyPool, 'nodePool'> | undefined {
  const { name, deletionTimestamp } = pool.metadata
  if (stuck.has(name)) return { code: 'stuck', because: 'a NodeClaim of it cannot be launched' }
  const [problem] = validatePool(pool, provider)
  if (problem !== undefined) return { code: 'invalid', because: problem }
  if (state.readinessPauses.leftMs(name) > 0)
    return { code: 'paused', because: 'its last nodes did not take pods' }
  const pause = state.brake.holding(name, 'launches')
  if (pause !== undefined) return { code: 'paused', because: pauseSentence(pause) }
  const aside = pools.aside(pool)
  if (aside !== undefined) return aside
  if (deletionTimestamp !== undefined) return { code: 'deleting', because: 'it is being deleted' }
  if (pool.spec.replicas !== undefined)
    return { code: 'static', because: 'it is static: spec.replicas sets the number of its nodes' }
  return undefined
}

async function listTypes(
  deps: Dependencies,
  nodePool: NodePool,
  signal: AbortSignal,
  typesOf: TypeSource,
): Promise<Listing | undefined> {
  const { provider, logger } = deps
  try {
    const instanceTypes = await typesOf(deps, nodePool, signal)
    const defaults = nodeDefaults(provider, nodePool)
    return {
      nodePool: canonicalPool(nodePool, provider.labelAliases),
      instanceTypes,
      ...(defaults && { defaults }),
    }
  } catch (error) {
    if (signal.aborted) throw error
    const details = { NodePool: { name: nodePool.metadata.name }, error }
    if (isProviderError(error, 'unevaluatedNodePool')) {
      logger.debug('skipping nodepool, its instance types are not known yet', details)
      return undefined
    }
    if (isExpectedFailure(error)) logger.warn('skipping nodepool, listing its instance types failed', details)
    else logger.error('skipping nodepool, listing its instance types failed', details)
    return { nodePool, instanceTypes: [] }
  }
}

/** The types of a NodePool with their prices and availability. */
type TypeSource = (
  deps: Dependencies,
  pool: NodePool,
  signal: AbortSignal,
) => Promise<readonly InstanceType[]>

const offeredTypes: TypeSource = async ({ provider }, pool, signal) =>
  await provider.getInstanceTypes(pool, signal)

/** Limits types to what their instances turned out to have: a running pod must not move to a node without room. */
const expectedTypes: TypeSource = async (deps, pool, signal) => {
  const { learning } = deps
  const types = await offeredTypes(deps, pool, signal)
  if (learning?.capacity.knowsInstances !== true) return types
  return learning.capacity.expected(pool, types, await learning.provider.getInstanceTypes(pool, signal))
}

function unreadyPools(deps: Dependencies): readonly UnreadyPool[] {
  const { pools, state } = deps
  const stuck = state.stuckPools()
  return pools.list().flatMap((pool) => {
    const found = state.isManaged(pool) ? obstacle(deps, stuck, pool) : undefined
    return found === undefined ? [] : [{ nodePool: pool.metadata.name, ...found }]
  })
}
