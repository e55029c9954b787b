/** NodePools that decisions may launch nodes of, with what they sell. */
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
  /** Those that this decision may choose from. */
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

/** A NodePool with what it sells. */
export type Listing = Pick<PoolInput, 'nodePool' | 'instanceTypes' | 'defaults'>

export class EligiblePools {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Pools that may launch: managed, dynamic, ready, valid and staying (scheduling.md 3), not stuck and not paused. */
  list(): readonly NodePool[] {
    return eligiblePools(this.#deps)
  }

  /**
   * A pool with the types its provider lists; none when it cannot list them now. Undefined while overlays
   * are not evaluated for the pool: then nothing is known of its types.
   */
  offered(pool: NodePool, signal: AbortSignal): Promise<Listing | undefined> {
    return listTypes(this.#deps, pool, signal, offeredTypes)
  }

  /** As {@link offered}, with no more than is to be expected of each type. */
  expected(pool: NodePool, signal: AbortSignal): Promise<Listing | undefined> {
    return listTypes(this.#deps, pool, signal, expectedTypes)
  }

  /** What launches failed for lately, and one launch tries each. */
  offeringsOnTrial(): readonly LaunchScope[] {
    return this.#deps.launchGuard.onTrial()
  }

  /** The pools that cannot launch, and what each waits for; in the order of the cache. */
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

/** What keeps a NodePool of this provider from launching; undefined when nothing does. */
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

/** The types of a pool as they can be bought. */
type TypeSource = (
  deps: Dependencies,
  pool: NodePool,
  signal: AbortSignal,
) => Promise<readonly InstanceType[]>

const offeredTypes: TypeSource = async ({ provider }, pool, signal) =>
  await provider.getInstanceTypes(pool, signal)

/** With no more than is to be expected of each: a pod that runs must not move to where it has no room. */
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
