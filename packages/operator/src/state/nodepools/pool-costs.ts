/** Price per hour of the instances of each NodePool (cluster-state.md 12). */
import {
  type InstanceType,
  labels,
  type NodeClaim,
  type PricePerHour,
  type PriceSum,
  type Requirement,
} from '@tenon/api'
import { Tally } from '@tenon/runtime'
import { type Caches, indexes } from '../caches.ts'
import { poolOf } from './managed-pool.ts'

/** The offering of an instance. */
export interface Bought {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
}

interface Counted {
  readonly bought: Bought
  readonly count: number
}

type Counts = Map<string, Counted>

const keyOf = ({ instanceType, zone, capacityType }: Bought) => `${zone}/${capacityType}/${instanceType}`

/** Counts claims by offering; prices are kept as long as a claim has them. */
export class PoolCosts {
  readonly #claims: Caches['nodeClaims']
  readonly #pools: Caches['nodePools']
  readonly #isManaged: (claim: NodeClaim) => boolean
  /** By NodePool, then by offering. */
  readonly #prices = new Map<string, Map<string, PricePerHour>>()
  /** By NodePool, until a claim or a NodePool changes. */
  readonly #counted = new Map<string, ReadonlyMap<string, Counted>>()
  /** By NodePool. */
  readonly #tallies = new Map<string, Tally<NodeClaim, Counts>>()

  constructor(
    { nodeClaims, nodePools }: Pick<Caches, 'nodeClaims' | 'nodePools'>,
    isManaged: (claim: NodeClaim) => boolean,
  ) {
    this.#claims = nodeClaims
    this.#pools = nodePools
    this.#isManaged = isManaged
    nodePools.onChange(({ kind, object }) => {
      this.#counted.clear()
      if (kind !== 'deleted') return
      this.#prices.delete(object.metadata.name)
      this.#tallies.delete(object.metadata.name)
    })
    nodeClaims.onChange((change) => {
      this.#counted.clear()
      if (change.kind === 'deleted') this.#prune(change.object)
      else if (change.kind === 'updated' && whereIs(change.old) !== whereIs(change.object))
        this.#prune(change.old)
    })
  }

  /**
   * Price of all instances of a pool with a known price, including those being deleted, and the number of instances
   * without one.
   */
  of(pool: string): PriceSum {
    const prices = this.#prices.get(pool)
    let pricePerHour = 0
    let unpriced = 0
    for (const [key, { count }] of this.#bought(pool)) {
      const price = prices?.get(key)
      if (price === undefined) unpriced += count
      else pricePerHour += count * price
    }
    return { pricePerHour, unpriced }
  }

  priceOf(claim: NodeClaim): PricePerHour {
    const bought = boughtFor(claim)
    return bought && this.#prices.get(poolOf(claim))?.get(keyOf(bought))
  }

  /** Whether the offering of the claim is known, and its price was not looked up yet. */
  lacksPrice(claim: NodeClaim): boolean {
    const bought = boughtFor(claim)
    return bought !== undefined && this.#prices.get(poolOf(claim))?.has(keyOf(bought)) !== true
  }

  hasBought(pool: string): boolean {
    return this.#bought(pool).size > 0
  }

  /** Offerings of the pool's instances whose price was not looked up yet. */
  unlooked(pool: string): readonly Bought[] {
    const prices = this.#prices.get(pool)
    return [...this.#bought(pool)]
      .filter(([key]) => prices?.has(key) !== true)
      .map(([, { bought }]) => bought)
  }

  /**
   * Looks prices up that are missing.
   * @returns offerings that `types` have no price for.
   */
  price(pool: string, types: readonly InstanceType[]): readonly Bought[] {
    const missing: Bought[] = []
    for (const bought of this.unlooked(pool)) {
      const price = priceIn(types, bought)
      if (price === undefined) missing.push(bought)
      this.#set(pool, bought, price)
    }
    return missing
  }

  /** Updates prices; offerings that no longer exist keep theirs. */
  reprice(pool: string, types: readonly InstanceType[]): void {
    for (const { bought } of this.#bought(pool).values()) {
      const price = priceIn(types, bought)
      if (price !== undefined) this.#set(pool, bought, price)
    }
  }

  #set(pool: string, bought: Bought, price: PricePerHour): void {
    const prices = this.#prices.get(pool) ?? new Map<string, PricePerHour>()
    this.#prices.set(pool, prices.set(keyOf(bought), price))
  }

  /** Removes the price of the claim if no other claim has the same offering. */
  #prune(gone: NodeClaim): void {
    const bought = boughtFor(gone)
    const prices = this.#prices.get(poolOf(gone))
    if (bought === undefined || prices === undefined) return
    if (this.#bought(poolOf(gone)).has(keyOf(bought))) return
    prices.delete(keyOf(bought))
    if (prices.size === 0) this.#prices.delete(poolOf(gone))
  }

  #bought(pool: string): ReadonlyMap<string, Counted> {
    let counts = this.#counted.get(pool)
    if (counts === undefined) {
      counts = this.#count(pool)
      this.#counted.set(pool, counts)
    }
    return counts
  }

  #count(pool: string): ReadonlyMap<string, Counted> {
    if (this.#pools.get({ name: pool }) === undefined) return new Map()
    let tally = this.#tallies.get(pool)
    if (tally === undefined) {
      tally = this.#tally()
      this.#tallies.set(pool, tally)
    }
    return tally.of(this.#claims.byIndex(indexes.byNodePool, pool))
  }

  #tally(): Tally<NodeClaim, Counts> {
    return new Tally<NodeClaim, Counts>({
      begin: () => new Map(),
      count: (counts, claim, by) => {
        const bought = boughtFor(claim)
        if (bought === undefined || !this.#isManaged(claim)) return
        const key = keyOf(bought)
        const count = (counts.get(key)?.count ?? 0) + by
        if (count === 0) counts.delete(key)
        else counts.set(key, { bought, count })
      },
    })
  }
}

/** Pool and offering of the claim; undefined while its labels are incomplete. */
function whereIs(claim: NodeClaim): string | undefined {
  const bought = boughtFor(claim)
  return bought && `${poolOf(claim)}/${keyOf(bought)}`
}

/** Undefined until the claim has all labels. */
function boughtFor({ metadata }: NodeClaim): Bought | undefined {
  const tags = metadata.labels ?? {}
  const [instanceType = '', zone = '', capacityType = ''] = [
    tags[labels.instanceType],
    tags[labels.zone],
    tags[labels.capacityType],
  ]
  if (instanceType === '' || zone === '' || capacityType === '') return undefined
  return { instanceType, zone, capacityType }
}

/** Unavailable offerings have a price, too. */
function priceIn(types: readonly InstanceType[], bought: Bought): PricePerHour {
  const type = types.find(({ name }) => name === bought.instanceType)
  return type?.offerings.find(
    ({ requirements }) =>
      isOneOf(requirements, labels.zone, bought.zone) &&
      isOneOf(requirements, labels.capacityType, bought.capacityType),
  )?.pricePerHour
}

function isOneOf(requirements: readonly Requirement[], key: string, value: string): boolean {
  return requirements.some((each) => each.key === key && (each.values ?? []).includes(value))
}
