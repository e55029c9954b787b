/** SKS nodepools and Instance Pools as node groups (cluster-autoscaler.md 1). */
import type { Node } from '@tenon/api'
import {
  type GroupFault,
  type GroupInstance,
  type GroupOfNode,
  type Increase,
  type InstanceQuota,
  type NodeExample,
  type NodeGroup,
  NodeGroupError,
  type NodeGroups,
} from '@tenon/provider'
import { type Clock, type Logger, messageOf } from '@tenon/runtime'
import type { NodeGroupApi } from './call-api.ts'
import { exampleNode } from './example-node.ts'
import type { KnownPool } from './known-pool.ts'
import { MemberReader } from './member-reader.ts'
import { instanceIdOf, Resolver } from './resolver.ts'
import { parseSpec } from './specs.ts'

export interface NodeGroupsDependencies {
  readonly api: NodeGroupApi
  readonly zone: string
  /** Values of `--nodes`. */
  readonly nodeGroupSpecs: readonly string[]
  /** `--allow-scale-to-zero`. */
  readonly allowsEmptyGroups: boolean
  readonly clock: Clock
  readonly logger: Logger
}

export class ExoscaleNodeGroups implements NodeGroups {
  readonly #api: NodeGroupApi
  readonly #zone: string
  readonly #logger: Logger
  readonly #allowsEmptyGroups: boolean
  readonly #pools = new Map<string, KnownPool>()
  readonly #resolver: Resolver
  readonly #members: MemberReader
  readonly #specs: ReturnType<typeof parseSpec>[]

  constructor(dependencies: NodeGroupsDependencies) {
    const { api, zone, nodeGroupSpecs, allowsEmptyGroups, clock, logger } = dependencies
    this.#api = api
    this.#zone = zone
    this.#logger = logger
    this.#allowsEmptyGroups = allowsEmptyGroups
    this.#specs = nodeGroupSpecs.map((text) => parseSpec(text, allowsEmptyGroups ? 0 : 1))
    for (const spec of this.#specs)
      if (spec.kind === 'malformed')
        logger.warn('a value of --nodes cannot be used; the groups it is for are not scaled', {
          problem: spec.problem,
        })
    this.#resolver = new Resolver({ api, clock, zone, specs: this.#specs }, this.#pools)
    this.#members = new MemberReader(api, clock, (id) => this.#resolver.providerIdOf(id))
  }

  async refresh(signal: AbortSignal): Promise<readonly GroupFault[]> {
    this.#resolver.forget()
    if (this.#allowsEmptyGroups) await this.#discover(signal)
    const pools = [...this.#pools.values()]
    const faults = await Promise.all(pools.map((pool) => this.#refreshPool(pool, signal)))
    const unreadable = faults.filter((fault) => fault !== undefined)
    if (unreadable.length > 0 && unreadable.length === this.#pools.size)
      throw new NodeGroupError(`no node group can be read: ${unreadable[0]?.reason ?? ''}`)
    const problems = [...this.#pools.values()]
      .filter(({ id }) => !unreadable.some(({ groupId }) => groupId === id))
      .flatMap(({ id, problem }) => (problem === undefined ? [] : [{ groupId: id, reason: problem }]))
    return [...unreadable, ...problems]
  }

  list(): readonly NodeGroup[] {
    return [...this.#pools.values()].flatMap(({ group }) => group ?? [])
  }

  group(id: string): NodeGroup | undefined {
    return this.#pools.get(id)?.group
  }

  groupOf(node: Node, signal: AbortSignal): Promise<GroupOfNode> {
    return this.#resolver.groupOf(node, signal)
  }

  instances(groupId: string, signal: AbortSignal): Promise<readonly GroupInstance[]> {
    return this.#members.read(groupId, signal)
  }

  exampleNode(groupId: string): Promise<NodeExample | undefined> {
    const pool = this.#pools.get(groupId)
    const node = pool && exampleNode(pool, this.#zone)
    return Promise.resolve(node && { node })
  }

  async instanceQuota(signal: AbortSignal): Promise<InstanceQuota | undefined> {
    try {
      const { limit, usage } = await this.#resolver.quota(signal)
      if (limit < 0 || usage === undefined) return undefined
      const awaited = [...this.#pools.values()].reduce((sum, pool) => sum + pool.awaited, 0)
      return { limit, used: usage + awaited }
    } catch (error) {
      signal.throwIfAborted()
      this.#logger.info('the quota of instances is not known', { error: messageOf(error) })
      return undefined
    }
  }

  async increaseSize(groupId: string, delta: number, signal: AbortSignal): Promise<Increase> {
    const { pool, group } = this.#known(groupId)
    if (!Number.isInteger(delta) || delta <= 0)
      throw new NodeGroupError(`group ${groupId}: the increase must be positive, not ${delta}`)
    const { targetSize, maxSize } = group
    if (targetSize + delta > maxSize)
      throw new NodeGroupError(
        `group ${groupId}: the increase is too large: size ${targetSize}, desired ${targetSize + delta}, maximum ${maxSize}`,
      )
    try {
      const increase = await pool.changes.increase(targetSize, delta, signal)
      increase.settled.catch(() => {
        this.#resolver.forgetQuota()
      })
      return increase
    } catch (error) {
      this.#resolver.forgetQuota()
      throw error
    }
  }

  async deleteInstances(
    groupId: string,
    providerIds: readonly string[],
    signal: AbortSignal,
    { belowMinimum }: { readonly belowMinimum: boolean } = { belowMinimum: false },
  ): Promise<void> {
    const { pool, group } = this.#known(groupId)
    const ids = providerIds.map(instanceIdOf)
    await pool.changes.remove({ ids, minSize: belowMinimum ? 0 : group.minSize, signal })
  }

  /** A pool cannot be reduced without losing members. */
  decreaseTargetSize(): Promise<'done' | 'unsupported'> {
    return Promise.resolve('unsupported')
  }

  #known(groupId: string) {
    const pool = this.#pools.get(groupId)
    const group = pool?.group
    if (pool === undefined || group === undefined)
      throw new NodeGroupError(`node group ${groupId} is not known${pool ? `: ${pool.problem ?? ''}` : ''}`)
    return { pool, group }
  }

  /** If the cloud does not respond, groups without nodes are found later. */
  async #discover(signal: AbortSignal): Promise<void> {
    try {
      await this.#resolver.discover(signal)
    } catch (error) {
      signal.throwIfAborted()
      this.#logger.info('could not look for node groups without nodes', { error: messageOf(error) })
    }
  }

  async #refreshPool(known: KnownPool, signal: AbortSignal): Promise<GroupFault | undefined> {
    try {
      const pool = await this.#api.pool(known.id, signal)
      if (pool === undefined) {
        this.#pools.delete(known.id)
        return undefined
      }
      const nodepoolId = known.ref.nodepool?.nodepoolId
      const nodepool =
        nodepoolId === undefined
          ? undefined
          : await this.#resolver.nodepool(nodepoolId, signal).catch(() => undefined)
      known.update(pool, nodepool)
      await known.readLimits(this.#specs, () => this.#resolver.quota(signal))
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return { groupId: known.id, reason: messageOf(error) }
    }
  }
}
