/** What is known of one pool. One record per id, whoever found the pool (cluster-autoscaler.md 9, trap 8). */
import { type NodeGroup, unboundedGroupSize } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import type { SksNodepool } from '../api/types.ts'
import type { NodeGroupApi, NodepoolRef, OrganisationQuota, PoolRef, SizedPool } from './call-api.ts'
import { PoolChanges } from './pool-changes.ts'
import { membersOf, PoolWatch, stateProblem } from './pool-watch.ts'
import { type ParsedSpec, specOf } from './specs.ts'

/** The nodepool of a pool, as in a list of clusters. */
export interface FoundNodepool extends NodepoolRef {
  readonly name: string
  readonly size?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: SksNodepool['taints']
}

type Limits =
  | { readonly kind: 'limits'; readonly min: number; readonly max: number }
  | { readonly kind: 'problem'; readonly problem: string }

export class KnownPool {
  readonly id: string
  readonly ref: PoolRef
  readonly changes: PoolChanges
  readonly #watch: PoolWatch
  #pool: SizedPool
  #nodepool: FoundNodepool | undefined
  #members: Set<string>
  #limits: Limits = { kind: 'problem', problem: 'its limits are not known yet' }

  constructor(pool: SizedPool, nodepool: FoundNodepool | undefined, api: NodeGroupApi, clock: Clock) {
    this.id = pool.id
    this.ref = {
      poolId: pool.id,
      ...(nodepool && {
        nodepool: { clusterId: nodepool.clusterId, nodepoolId: nodepool.nodepoolId },
      }),
    }
    this.#pool = pool
    this.#nodepool = nodepool
    this.#members = new Set(membersOf(pool))
    this.#watch = new PoolWatch(this.ref, api, clock, (read) => {
      this.#take(read)
    })
    this.changes = new PoolChanges(this.ref, api, this.#watch)
  }

  /** Undefined while its limits are unknown. */
  get group(): NodeGroup | undefined {
    if (this.#limits.kind === 'problem') return undefined
    const { min, max } = this.#limits
    const size = this.#nodepool?.size ?? this.#pool.size
    return {
      id: this.id,
      name: this.name,
      minSize: min,
      maxSize: max,
      targetSize: Math.max(size, this.changes.askedSize),
    }
  }

  /** How many of its members do not exist yet. */
  get awaited(): number {
    return Math.max(0, Math.max(this.#pool.size, this.changes.askedSize) - membersOf(this.#pool).length)
  }

  get name(): string {
    return this.#nodepool?.name ?? this.#pool.name ?? this.id
  }

  /** Why it cannot be scaled now. */
  get problem(): string | undefined {
    return this.#limits.kind === 'problem' ? this.#limits.problem : stateProblem(this.#pool)
  }

  /** Type id of its members; undefined if unknown. */
  get typeId(): string | undefined {
    return this.#pool['instance-type']?.id
  }

  get nodepool(): FoundNodepool | undefined {
    return this.#nodepool
  }

  hasMember(instanceId: string): boolean {
    return this.#members.has(instanceId)
  }

  /** Adds an instance that names this pool as its manager but was created after the pool was read. */
  addMember(instanceId: string): void {
    this.#members.add(instanceId)
  }

  /**
   * The latest state.
   * @param nodepool from a list of clusters; absent if there is none or it was not read.
   */
  update(pool: SizedPool, nodepool: FoundNodepool | undefined): void {
    this.#take(pool)
    if (nodepool !== undefined) this.#nodepool = nodepool
  }

  /** @param quota reads the instance quota of the organisation; only called for groups without a spec. */
  async readLimits(specs: readonly ParsedSpec[], quota: () => Promise<OrganisationQuota>): Promise<void> {
    const { nodepool } = this.ref
    const ids = nodepool === undefined ? [this.id] : [nodepool.nodepoolId, this.id]
    const lookup = specOf(specs, [this.name, ...ids])
    if (lookup.kind === 'malformed') this.#limits = { kind: 'problem', problem: lookup.problem }
    else if (lookup.kind === 'found') this.#limits = this.#limitsOf(lookup.spec)
    else this.#limits = await this.#defaultLimits(quota)
  }

  /** Only nodepools can be empty: an Instance Pool has no size 0 in the API. */
  #limitsOf({ min, max }: { readonly min: number; readonly max: number }): Limits {
    if (min > 0 || this.ref.nodepool !== undefined) return { kind: 'limits', min, max }
    return {
      kind: 'problem',
      problem: `Instance Pool ${this.name} cannot be empty: give it a minimum of at least 1`,
    }
  }

  async #defaultLimits(quota: () => Promise<OrganisationQuota>): Promise<Limits> {
    try {
      const { limit } = await quota()
      return { kind: 'limits', min: 1, max: limit < 0 ? unboundedGroupSize : limit }
    } catch (error) {
      // The last known limit is better than none.
      if (this.#limits.kind === 'limits') return this.#limits
      const said = error instanceof Error ? error.message : String(error)
      return { kind: 'problem', problem: `the maximum size of group ${this.name} is not known: ${said}` }
    }
  }

  /** Cached lists of its nodepool may be older, so their size no longer counts. */
  #take(pool: SizedPool): void {
    this.#pool = pool
    this.#members = new Set(membersOf(pool))
    if (this.#nodepool !== undefined) {
      const { size: _, ...nodepool } = this.#nodepool
      this.#nodepool = nodepool
    }
  }
}
