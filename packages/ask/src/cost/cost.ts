/** What a cluster costs, by owner, namespace, NodePool and so on (ask.md 11). */
import { type PricePerHour, sumOfPrices } from '@tenon/api'
import { priceShares } from '@tenon/operator/objects'
import type { PricedInstance, PricedPod } from './priced.ts'

/** Defined once, so that all monthly figures agree (ask.md, trap 5). */
export const hoursPerMonth = 730

export const costDimensions = ['nodepool', 'namespace', 'owner', 'type', 'zone'] as const

export type CostDimension = (typeof costDimensions)[number]

export interface CostGroup {
  /** Value of the dimension; for an owner `namespace/kind/name`. Absent for instances without one. */
  readonly name?: string
  readonly instances: number
  /** In a report by namespace or owner: including placeholder pods of CapacityBuffers. */
  readonly pods: number
  /** The share of the prices that requests account for, per hour. */
  readonly requestedPerHour: number
  /**
   * The share that no pod requests, per hour; always 0 in a report by namespace or owner, which has one
   * figure for the whole cluster.
   */
  readonly idlePerHour: number
  /** Instances with an unknown price; in a report by namespace or owner, the pods on them. */
  readonly unpriced: number
}

export interface CostReport {
  readonly by: CostDimension
  /** Most expensive first, then by name. */
  readonly groups: readonly CostGroup[]
  /** The share that no pod requests and that belongs to no group. */
  readonly idlePerHour: number
  /** The part of the total that NodePools add for each node (annotation `tenon.sh/price-per-node`). */
  readonly surchargePerHour: number
  /** Sum of all groups and of the idle share. */
  readonly totalPerHour: number
  readonly instances: number
  /** Instances with an unknown price; no sum includes them. */
  readonly unpriced: readonly { readonly name: string; readonly type?: string }[]
}

export function costReport(instances: readonly PricedInstance[], by: CostDimension): CostReport {
  const sums = new CostSums(by)
  for (const instance of instances) sums.add(instance)
  return sums.report()
}

/** Builds a report one instance at a time, so that large clusters can be processed in slices. */
export class CostSums {
  readonly #by: CostDimension
  readonly #groups = new Map<string | undefined, Totals>()
  readonly #prices: PricePerHour[] = []
  readonly #unpriced: CostReport['unpriced'][number][] = []
  #idlePerHour = 0
  #surchargePerHour = 0

  constructor(by: CostDimension) {
    this.#by = by
  }

  add(instance: PricedInstance): void {
    const { name, pods, pricePerHour, type } = instance
    const by = this.#by
    const shares = sharesOf(instance)
    if (by === 'namespace' || by === 'owner') {
      for (const [at, pod] of pods.entries()) addPod(this.#groupOf(podGroup(pod, by)), shares?.pods[at])
      this.#idlePerHour += shares?.idle ?? 0
    } else addInstance(this.#groupOf(instanceGroup(instance, by)), instance, shares)
    this.#prices.push(pricePerHour)
    this.#surchargePerHour += instance.surchargePerHour ?? 0
    if (pricePerHour === undefined) this.#unpriced.push({ name, ...(type !== undefined && { type }) })
  }

  report(): CostReport {
    return {
      by: this.#by,
      groups: Array.from(this.#groups, ([name, totals]) => ({
        ...(name !== undefined && { name }),
        ...totals,
      })).toSorted(byCost),
      idlePerHour: this.#idlePerHour,
      surchargePerHour: this.#surchargePerHour,
      totalPerHour: sumOfPrices(this.#prices).pricePerHour,
      instances: this.#prices.length,
      unpriced: [...this.#unpriced],
    }
  }

  #groupOf(name: string | undefined): Totals {
    const group = this.#groups.get(name) ?? newTotals()
    this.#groups.set(name, group)
    return group
  }
}

type Totals = { -readonly [Name in keyof Omit<CostGroup, 'name'>]: number }

function newTotals(): Totals {
  return { instances: 0, pods: 0, requestedPerHour: 0, idlePerHour: 0, unpriced: 0 }
}

function addPod(group: Totals, share: number | undefined): void {
  group.pods++
  if (share === undefined) group.unpriced++
  else group.requestedPerHour += share
}

function addInstance(group: Totals, { pods }: PricedInstance, shares: Shares | undefined): void {
  group.instances++
  group.pods += pods.filter(({ isRoom }) => isRoom !== true).length
  if (shares === undefined) {
    group.unpriced++
    return
  }
  group.idlePerHour += shares.idle
  for (const share of shares.pods) group.requestedPerHour += share
}

function podGroup({ namespace, owner }: PricedPod, by: 'namespace' | 'owner'): string {
  return by === 'namespace' ? namespace : `${namespace}/${owner.kind.toLowerCase()}/${owner.name}`
}

function instanceGroup(
  { nodePool, type, zone }: PricedInstance,
  by: 'nodepool' | 'type' | 'zone',
): string | undefined {
  switch (by) {
    case 'nodepool':
      return nodePool
    case 'type':
      return type
    case 'zone':
      return zone
  }
}

function byCost(a: CostGroup, b: CostGroup): number {
  const difference = b.requestedPerHour + b.idlePerHour - (a.requestedPerHour + a.idlePerHour)
  if (difference !== 0) return difference
  return (a.name ?? '') < (b.name ?? '') ? -1 : 1
}

/** The price of an instance per hour, split by pod. */
interface Shares {
  /** In the order of the pods. */
  readonly pods: readonly number[]
  readonly idle: number
}

/** Undefined if the price is unknown. */
function sharesOf({ pricePerHour, allocatable, pods }: PricedInstance): Shares | undefined {
  if (pricePerHour === undefined) return undefined
  const shares = priceShares(
    pricePerHour,
    allocatable,
    pods.map(({ requests }) => requests),
  )
  const requested = shares.reduce((sum, share) => sum + share, 0)
  return { pods: shares, idle: Math.max(0, pricePerHour - requested) }
}
