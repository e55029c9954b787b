/** NodePools that may launch nodes, with the instance types that they offer. */
import type { InstanceType, NodePool } from '@tenon/api'
import type { PoolInput } from '@tenon/engine'
import { type CloudProvider, isProviderError, type PoolRules } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { CapacityLearning } from '../../cloud/provider-layers.ts'
import { isExpectedFailure } from '../../cloud/expected-failures.ts'
import { untilText } from '../../text.ts'
import { validatePool } from '../../state/nodepools/pool-problems.ts'
import { canonicalPool } from '../../decide/canonical-keys.ts'
import { nodeDefaults } from '../../nodeclaim/claim-objects.ts'
import { pauseSentence } from '../../state/pause.ts'
import type { PoolChoice } from '../../state/nodepools/observed-pools.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

export interface PoolSources {
  /** The NodePools of this decision. */
  readonly choice: PoolChoice
  readonly state: Pick<ClusterState, 'brake' | 'isManaged' | 'readinessPauses' | 'stuckPools'>
  readonly provider: Pick<
    CloudProvider,
    'getInstanceTypes' | 'labelAliases' | 'nodeClasses' | 'nodeDefaults' | keyof PoolRules
  >
  readonly learning?: CapacityLearning
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

/** A NodePool with its instance types. */
export type Listing = Pick<PoolInput, 'nodePool' | 'instanceTypes' | 'defaults'>

/** A NodePool that launches nothing now. */
export interface UnreadyPool {
  readonly nodePool: string
  readonly code: 'stuck' | 'invalid' | 'paused' | 'notReady' | 'observed' | 'deleting' | 'static'
  /** A clause without a full stop. */
  readonly because: string
}

/** NodePools that may launch: managed, dynamic, ready, valid, not being deleted (scheduling.md 3), not stuck or paused. */
export function eligiblePools(sources: PoolSources): readonly NodePool[] {
  const { choice, state } = sources
  const stuck = state.stuckPools()
  return choice.list().filter((pool) => state.isManaged(pool) && obstacle(sources, stuck, pool) === undefined)
}

/** NodePools that cannot launch, and why, in the order of the cache. */
export function unreadyPools(sources: PoolSources): readonly UnreadyPool[] {
  const { choice, state } = sources
  const stuck = state.stuckPools()
  return choice.list().flatMap((pool) => {
    const found = state.isManaged(pool) ? obstacle(sources, stuck, pool) : undefined
    return found === undefined ? [] : [{ nodePool: pool.metadata.name, ...found }]
  })
}

/** Why a NodePool of this provider cannot launch; undefined if it can. */
function obstacle(
  { choice, clock, provider, state }: PoolSources,
  stuck: ReadonlySet<string>,
  pool: NodePool,
): Omit<UnreadyPool, 'nodePool'> | undefined {
  const { name, deletionTimestamp } = pool.metadata
  if (stuck.has(name)) return { code: 'stuck', because: 'a NodeClaim of it cannot be launched' }
  const [problem] = validatePool(pool, provider)
  if (problem !== undefined) return { code: 'invalid', because: problem }
  const pausedMs = state.readinessPauses.leftMs(name)
  if (pausedMs > 0)
    return {
      code: 'paused',
      because: untilText('its last nodes did not take pods', clock.now() + pausedMs),
    }
  const pause = state.brake.holding(name, 'launches')
  if (pause !== undefined) return { code: 'paused', because: pauseSentence(pause) }
  const aside = choice.aside(pool)
  if (aside !== undefined) return aside
  if (deletionTimestamp !== undefined) return { code: 'deleting', because: 'it is being deleted' }
  if (pool.spec.replicas !== undefined)
    return { code: 'static', because: 'it is static: spec.replicas sets the number of its nodes' }
  return undefined
}

/**
 * A NodePool with the types that its provider offers; none if it cannot list them now. Undefined until overlays are
 * evaluated for it: its types are unknown.
 */
export function offeredTypes(
  sources: PoolSources,
  pool: NodePool,
  signal: AbortSignal,
): Promise<Listing | undefined> {
  return listed(sources, pool, signal, () => sources.provider.getInstanceTypes(pool, signal))
}

/**
 * As {@link offeredTypes}, with each type no larger than its instances turned out to be: a running pod must not move to a
 * node without room.
 */
export function expectedTypes(
  sources: PoolSources,
  pool: NodePool,
  signal: AbortSignal,
): Promise<Listing | undefined> {
  return listed(sources, pool, signal, async () => {
    const { learning, provider } = sources
    const types = await provider.getInstanceTypes(pool, signal)
    if (learning?.capacity.knowsInstances !== true) return types
    return learning.capacity.expected(pool, types, await learning.provider.getInstanceTypes(pool, signal))
  })
}

async function listed(
  { logger, provider }: PoolSources,
  nodePool: NodePool,
  signal: AbortSignal,
  list: () => Promise<readonly InstanceType[]>,
): Promise<Listing | undefined> {
  try {
    const instanceTypes = await list()
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
