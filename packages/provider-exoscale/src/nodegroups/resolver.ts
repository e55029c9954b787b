/** From a node to its pool (cluster-autoscaler.md 1.3). Results are cached for one loop. */
import type { Node } from '@tenon/api'
import type { GroupOfNode } from '@tenon/provider'
import { type Clock, messageOf } from '@tenon/runtime'
import type { ExoscaleInstance, SksCluster, SksNodepool } from '../api/types.ts'
import { isUuid } from '../identifiers.ts'
import type { NodeGroupApi, OrganisationQuota } from './call-api.ts'
import { Gate } from './gate.ts'
import { type FoundNodepool, KnownPool } from './known-pool.ts'
import type { ParsedSpec } from './specs.ts'

export interface ResolverDependencies {
  readonly api: NodeGroupApi
  readonly clock: Clock
  readonly zone: string
  readonly specs: readonly ParsedSpec[]
}

const prefix = 'exoscale://'
const controlPlaneKeys = ['node-role.kubernetes.io/master', 'node-role.kubernetes.io/control-plane']

export class Resolver {
  readonly #dependencies: ResolverDependencies
  readonly #pools: Map<string, KnownPool>
  readonly #gate = new Gate(8)
  /** Provider IDs as on nodes, by instance id: some have no prefix. */
  readonly #providerIds = new Map<string, string>()
  #nodes = new Map<string, Promise<GroupOfNode>>()
  #found = new Map<string, Promise<GroupOfNode>>()
  #clusters: Promise<readonly SksCluster[]> | undefined
  #quota: Promise<OrganisationQuota> | undefined

  constructor(dependencies: ResolverDependencies, pools: Map<string, KnownPool>) {
    this.#dependencies = dependencies
    this.#pools = pools
  }

  /** Call it when a loop begins. Clears the cache. */
  forget(): void {
    this.#nodes = new Map()
    this.#found = new Map()
    this.#clusters = undefined
    this.#quota = undefined
  }

  groupOf(node: Node, signal: AbortSignal): Promise<GroupOfNode> {
    const key = `${node.metadata.name} ${node.spec?.providerID ?? ''}`
    const known = this.#nodes.get(key)
    if (known !== undefined) return known
    const answer = this.#resolve(node, signal)
    this.#nodes.set(key, answer)
    return answer
  }

  /** The provider ID of an instance, as on its node if there is one. */
  providerIdOf(instanceId: string): string {
    return this.#providerIds.get(instanceId) ?? `${prefix}${instanceId}`
  }

  /** Read once per loop, and after {@link forgetQuota}. */
  quota(signal: AbortSignal): Promise<OrganisationQuota> {
    this.#quota ??= this.#dependencies.api.instanceQuota(signal)
    return this.#quota
  }

  /** Call it after the cloud refused what the quota seemed to allow. */
  forgetQuota(): void {
    this.#quota = undefined
  }

  /** The nodepool of a pool, by its id; undefined if no cluster of the zone has it. */
  async nodepool(nodepoolId: string, signal: AbortSignal): Promise<FoundNodepool | undefined> {
    this.#clusters ??= this.#dependencies.api.clusters(signal)
    for (const { id, nodepools = [] } of await this.#clusters) {
      const found = nodepools.find((nodepool) => nodepool.id === nodepoolId)
      if (found === undefined) continue
      return foundNodepool(id, found)
    }
    return undefined
  }

  /** Finds nodepools in `--nodes` of which no node is known, by name or id. */
  async discover(signal: AbortSignal): Promise<void> {
    const known = new Set(
      [...this.#pools.values()].flatMap((pool) => [pool.name, pool.id, pool.nodepool?.nodepoolId]),
    )
    const names = this.#dependencies.specs
      .flatMap(({ name }) => name ?? [])
      .filter((name) => !known.has(name))
    if (names.length === 0) return
    this.#clusters ??= this.#dependencies.api.clusters(signal)
    const nodepools = (await this.#clusters).flatMap((cluster) => cluster.nodepools ?? [])
    for (const name of names) {
      const nodepool = nodepools.find((each) =>
        [each.name, each.id, each['instance-pool']?.id].includes(name),
      )
      const poolId = nodepool?.['instance-pool']?.id
      if (poolId !== undefined && !this.#pools.has(poolId)) await this.#find(poolId, signal)
    }
  }

  async #resolve(node: Node, signal: AbortSignal): Promise<GroupOfNode> {
    const { name } = node.metadata
    const providerId = node.spec?.providerID ?? ''
    if (providerId === '') return withoutProviderId(node)
    const id = instanceIdOf(providerId)
    if (!isUuid(id))
      return { kind: 'none', reason: `node ${name}: provider ID "${providerId}" is none of Exoscale` }
    this.#providerIds.set(id, providerId)
    try {
      return await this.#gate.run(async () => this.#knownMember(id) ?? (await this.#ask(name, id, signal)))
    } catch (error) {
      signal.throwIfAborted()
      return { kind: 'unresolved', reason: `node ${name}: ${messageOf(error)}` }
    }
  }

  #knownMember(instanceId: string): GroupOfNode | undefined {
    for (const pool of this.#pools.values()) if (pool.hasMember(instanceId)) return answerOf(pool)
    return undefined
  }

  async #ask(nodeName: string, id: string, signal: AbortSignal): Promise<GroupOfNode> {
    const instance = await this.#dependencies.api.instance(id, signal)
    if (instance === undefined)
      return { kind: 'none', reason: `node ${nodeName}: there is no instance ${id} in this zone` }
    const poolId = poolIdOf(instance)
    if (poolId === undefined) return { kind: 'none' }
    const found = this.#found.get(poolId) ?? this.#find(poolId, signal)
    this.#found.set(poolId, found)
    const answer = await found
    if (answer.kind !== 'none') this.#pools.get(poolId)?.addMember(id)
    return answer
  }

  /** The id is known here, so a failure only affects this group. */
  async #find(poolId: string, signal: AbortSignal): Promise<GroupOfNode> {
    const known = this.#pools.get(poolId)
    if (known !== undefined) return answerOf(known)
    try {
      const pool = await this.#dependencies.api.pool(poolId, signal)
      if (pool === undefined) return { kind: 'none', reason: `there is no instance pool ${poolId}` }
      const { manager } = pool
      const nodepoolId = manager?.type === 'sks-nodepool' ? (manager.id ?? '') : undefined
      const nodepool = nodepoolId === undefined ? undefined : await this.nodepool(nodepoolId, signal)
      if (nodepoolId !== undefined && nodepool === undefined)
        return unresolved(
          poolId,
          `nodepool ${nodepoolId} is in no SKS cluster of zone ${this.#dependencies.zone}`,
        )
      const found = new KnownPool(pool, nodepool, this.#dependencies.api, this.#dependencies.clock)
      await found.readLimits(this.#dependencies.specs, () => this.quota(signal))
      this.#pools.set(poolId, found)
      return answerOf(found)
    } catch (error) {
      signal.throwIfAborted()
      return unresolved(poolId, messageOf(error))
    }
  }
}

function foundNodepool(clusterId: string, nodepool: SksNodepool): FoundNodepool {
  const { id: nodepoolId, name = nodepoolId, size, labels, taints } = nodepool
  return {
    clusterId,
    nodepoolId,
    name,
    ...(size !== undefined && { size }),
    ...(labels !== undefined && { labels }),
    ...(taints !== undefined && { taints }),
  }
}

function answerOf(pool: KnownPool): GroupOfNode {
  const { id, group, problem } = pool
  if (group !== undefined) return { kind: 'group', groupId: id }
  return unresolved(id, problem ?? 'its limits are not known')
}

function unresolved(groupId: string, reason: string): GroupOfNode {
  return { kind: 'unresolved', groupId, reason }
}

/** A control plane node without a cloud controller is in no group; any other node may still get its ID. */
function withoutProviderId(node: Node): GroupOfNode {
  const taints = node.spec?.taints ?? []
  const isControlPlane = controlPlaneKeys.some(
    (key) => taints.some((taint) => taint.key === key) || Object.hasOwn(node.metadata.labels ?? {}, key),
  )
  if (isControlPlane) return { kind: 'none' }
  return { kind: 'unresolved', reason: `node ${node.metadata.name} has no provider ID` }
}

/** Without the prefix, the whole text is the id. */
export function instanceIdOf(providerId: string): string {
  return (providerId.startsWith(prefix) ? providerId.slice(prefix.length) : providerId).toLowerCase()
}

/** @throws Error for a response that may be incomplete, as it proves nothing. */
function poolIdOf({ id, state, manager }: ExoscaleInstance): string | undefined {
  if (manager?.type === 'instance-pool' && manager.id !== undefined) return manager.id
  if (manager === undefined && state === undefined)
    throw new Error(`get-instance failed: the answer about instance ${id} has neither state nor manager`)
  return undefined
}
