/** NodePools with a fixed number of nodes, and their claims (cluster-state.md 15.3, 15.5). */
import {
  conditionOf,
  karpenterKinds,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  ownValue,
  parseResources,
  type Resources,
} from '@tenon/api'
import { exceededQuota, overlaps, parseRequirements, type QuotaInput } from '@tenon/engine'
import type { Change, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Random } from '@tenon/runtime'
import {
  type ClaimCreations,
  createOrAdopt,
  freshClaimName,
  isUnclear,
} from '../../nodeclaim/claim-creation.ts'
import { staticClaimFor } from '../../nodeclaim/claim-objects.ts'
import type { ClaimTraces } from '../../nodeclaim/claim-traces.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ExceededQuota, LimitReservation } from '../../state/nodepools/limit-reservations.ts'
import { largestNoted, withoutNodes } from '../../state/quotas.ts'
import { isObserved } from '../../state/nodepools/observed-pools.ts'
import { validatePool } from '../../state/nodepools/pool-problems.ts'

export type StaticPool = NodePool & { readonly spec: { readonly replicas: number } }

/** The static NodePool of that name, if this process serves it and it is not being deleted. */
export function staticPool(state: Pick<ClusterState, 'managedPool'>, name: string): StaticPool | undefined {
  const pool = state.managedPool(name)
  if (pool === undefined || !isStatic(pool) || pool.metadata.deletionTimestamp !== undefined) return undefined
  return pool
}

/** As {@link staticPool}, but undefined if the pool is invalid or only observed. */
export function validStaticPool(
  state: Pick<ClusterState, 'managedPool'>,
  provider: CloudProvider,
  name: string,
): StaticPool | undefined {
  const pool = staticPool(state, name)
  if (pool === undefined || isObserved(pool)) return undefined
  return validatePool(pool, provider).length > 0 ? undefined : pool
}

/** Name of the claim's NodePool, if that is static. */
export function staticPoolName({ nodePools }: Caches, claim: NodeClaim): string | undefined {
  const name = claim.metadata.labels?.[labels.nodePool] ?? ''
  const pool = nodePools.get({ name })
  return pool !== undefined && isStatic(pool) ? name : undefined
}

function isStatic(pool: NodePool): pool is StaticPool {
  return pool.spec.replicas !== undefined
}

/** Whether the pool was added or its size has changed. */
export function isResized(change: Change<NodePool>): boolean {
  if (change.kind === 'deleted' || !isStatic(change.object)) return false
  return change.kind === 'added' || change.old.spec.replicas !== change.object.spec.replicas
}

export function isNowReady(change: Change<NodePool>): boolean {
  if (change.kind !== 'updated' || !isStatic(change.object)) return false
  const status = (pool: NodePool) => conditionOf(pool, 'Ready')?.status
  return status(change.old) !== 'True' && status(change.object) === 'True'
}

/** Whether the deletion of a claim has begun. */
export function isNowLeaving(change: Change<NodeClaim>): boolean {
  if (change.kind === 'deleted') return true
  const isDeleting = ({ metadata }: NodeClaim) => metadata.deletionTimestamp !== undefined
  return change.kind === 'updated' && !isDeleting(change.old) && isDeleting(change.object)
}

/** Maximum number of claims of the pool. */
export function nodeLimit(pool: NodePool): number {
  return parseResources(pool.spec.limits)['nodes'] ?? Number.POSITIVE_INFINITY
}

interface Dependencies {
  readonly client: KubeClient
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly creations: ClaimCreations
  readonly claimTraces?: ClaimTraces | undefined
  readonly clock: Clock
  readonly random: Random
}

/** After this long, a request without an answer has ended one way or the other. */
const lateMs = 60_000

/** Creates claims of static NodePools under names reserved before, so that none is created twice. */
export class StaticClaims {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Lists the claims of the pool: the caches of a new leader may not show what the last one has just created. */
  async learn({ metadata }: NodePool, signal: AbortSignal): Promise<void> {
    const { client, state } = this.#deps
    const labelSelector = { matchLabels: { [labels.nodePool]: metadata.name } }
    const claims = await client.list(karpenterKinds.nodeClaim, { labelSelector, signal })
    for (const claim of claims) state.seed(claim)
  }

  /** Reserves up to `wanted` claims within `limits.nodes`. @returns a name for each, to be created or released. */
  reserve(pool: NodePool, wanted: number): readonly string[] {
    const { provider, random, state } = this.#deps
    const { name } = pool.metadata
    const fresh = () => freshClaimName(pool, random, provider.claimNameLimit)
    return state.poolClaims.reserve(name, nodeLimit(pool), Array.from({ length: wanted }, fresh))
  }

  /** Releases names of which no claim is to be created any more. */
  abandon(...names: readonly string[]): void {
    this.#deps.state.poolClaims.release(...names)
    for (const name of names) this.#deps.state.limitReservations.forget(name)
  }

  /**
   * Creates the claim of a reserved name. The name is released after a clear answer. Otherwise it stays reserved, and another
   * attempt creates no second claim.
   * @param reason as in metric `karpenter_nodeclaims_created_total`.
   * @returns the claim, or the quota that has no room for it.
   */
  async create(
    pool: NodePool,
    name: string,
    reason: string,
    signal: AbortSignal,
  ): Promise<{ readonly kind: 'created'; readonly claim: NodeClaim } | ExceededQuota> {
    const { claimTraces, client, clock, creations, provider, state } = this.#deps
    const { poolClaims } = state
    const unmarked = staticClaimFor(provider, pool, name)
    try {
      const reservation = await this.#reserveQuotas(pool, unmarked, signal)
      if (reservation !== undefined && 'kind' in reservation) {
        poolClaims.release(name)
        return reservation
      }
      const annotations = { ...unmarked.metadata.annotations, ...(reservation && largestNoted(reservation)) }
      const noted = { ...unmarked, metadata: { ...unmarked.metadata, annotations } }
      const object = claimTraces?.annotated(noted) ?? noted
      const claim = await createOrAdopt(client, pool, object, signal)
      state.seed(claim)
      poolClaims.release(name)
      creations.note({ name, nodePool: pool.metadata.name, reason, minValuesRelaxed: false })
      return { kind: 'created', claim }
    } catch (error) {
      if (isUnclear(error)) poolClaims.leaveUnsettled(name, clock.monotonic())
      else {
        this.abandon(name)
      }
      throw error
    }
  }

  /** Whether quotas would have room for one more node of the NodePool if they did not count these nodes. */
  async hasRoomWithout(pool: StaticPool, nodes: readonly Node[], signal: AbortSignal): Promise<boolean> {
    const { provider, state } = this.#deps
    const { counting, largest } = await this.#demand(pool, staticClaimFor(provider, pool, ''), signal)
    return withoutNodes(counting, nodes).every(
      ({ limits, name, usage }) =>
        exceededQuota(limits, [usage, state.limitReservations.ofQuota(name)], largest) === undefined,
    )
  }

  /** Undefined if no quota counts nodes of the NodePool, or an attempt before has reserved for this name. */
  async #reserveQuotas(
    pool: NodePool,
    object: ReturnType<typeof staticClaimFor>,
    signal: AbortSignal,
  ): Promise<LimitReservation | ExceededQuota | undefined> {
    const { limitReservations, quotas } = this.#deps.state
    const { name } = object.metadata
    const before = limitReservations.reservationOf(name)
    if (before !== undefined || quotas.inputs().length === 0) return before
    // Reserved at once, without another wait.
    const { counting, largest } = await this.#demand(pool, object, signal)
    if (counting.length === 0) return undefined
    const reservation = limitReservations.takeOfQuotas(pool.metadata.name, counting, largest)
    if (!('kind' in reservation)) limitReservations.follow(reservation, name)
    return reservation
  }

  /** The quotas that count a claim of the NodePool, and the most that it takes of them. */
  async #demand(
    pool: NodePool,
    { metadata: { labels: known }, spec: { requirements } }: ReturnType<typeof staticClaimFor>,
    signal: AbortSignal,
  ): Promise<{ readonly counting: readonly QuotaInput[]; readonly largest: Resources }> {
    const { provider, state } = this.#deps
    const own = parseRequirements(requirements)
    const listed = await provider.getInstanceTypes(pool, signal)
    // Also those that are sold out: they may be back when the claim is launched.
    const types = listed.filter((type) => overlaps(own, parseRequirements(type.requirements)))
    if (types.length === 0)
      throw new Error(
        `NodePool ${pool.metadata.name} has no instance type now, so it is not known what a node takes of CapacityQuotas`,
      )
    const counting = state.quotas.counting({ requirements, labels: known }, types)
    const resources = new Set(counting.flatMap(({ limits }) => Object.keys(limits)))
    const capacities = types.map(({ capacity }) => capacity)
    const most = (resource: string) =>
      resource === 'nodes'
        ? 1
        : Math.max(0, ...capacities.map((capacity) => ownValue(capacity, resource) ?? 0))
    return { counting, largest: Object.fromEntries([...resources].map((name) => [name, most(name)])) }
  }

  /**
   * Looks up a claim whose creation had no clear answer, and releases its name, unless it may still be created.
   * @returns whether it was released.
   */
  async settle(pool: string, name: string, signal: AbortSignal): Promise<boolean> {
    const { client, clock, state } = this.#deps
    if (!state.poolClaims.unsettled(pool, clock.monotonic() - lateMs).includes(name)) return false
    const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
    if (claim === undefined) state.limitReservations.forget(name)
    else state.seed(claim)
    state.poolClaims.release(name)
    return true
  }
}
