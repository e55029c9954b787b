/** What the instances of each NodePool cost an hour (cluster-state.md 12). */
import {
  type InstanceType,
  labels,
  type NodeClaim,
  type PricePerHour,
  type PriceSum,
  type Requirement,
} from '@tenon/api'
import { Tally } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { indexes } from '../caches.ts'

/** One thing that can be bought: a type in a zone, with a capacity type. */
export interface Bought {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
}

/** How many instances there are of one thing. */
interface Counted {
  readonly bought: Bought
  readonly count: number
}

/** By key of what is bought. */
type Counts = Map<string, Counted>

const keyOf = ({ instanceType, zone, capacityType }: Bought) => `${zone}/${capacityType}/${instanceType}`

/** Counts the claims of the caches; remembers only prices, for as long as a claim has them. */
export class PoolCosts {
  readonly #claims: Caches['nodeClaims']
  readonly #pools: Caches['nodePools']
  readonly #isManaged: (claim: NodeClaim) => boolean
  /** By NodePool, then by what is bought. */
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
   * Price an hour of all instances of a pool, as far as prices are known, and the number of instances whose price is
   * not; those going away cost until they are gone.
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

  /** Price an hour of the claim's instance; undefined while it is not known. */
  priceOf(claim: NodeClaim): PricePerHour {
    const bought = boughtFor(claim)
    return bought && this.#prices.get(poolOf(claim))?.get(keyOf(bought))
  }

  /** Whether the claim says what it is, and its price was not looked for yet. */
  lacksPrice(claim: NodeClaim): boolean {
    const bought = boughtFor(claim)
    return bought !== undefined && this.#prices.get(poolOf(claim))?.has(keyOf(bought)) !== true
  }

  /** Whether the pool has instances that may cost something. */
  hasBought(pool: string): boolean {
    return this.#bought(pool).size > 0
  }

  /** What the pool's instances are and no price was looked for yet. */
  unlooked(pool: string): readonly Bought[] {
    const prices = this.#prices.get(pool)
    return [...this.#bought(pool)]
      .filter(([key]) => prices?.has(key) !== true)
      .map(([, { bought }]) => bought)
  }

  /**
   * Takes prices for what was not looked for yet.
   * @returns what `types` give no price for.
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

  /** Takes today's prices; what is no longer offered keeps the price it had. */
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

  /** A price goes with the last claim that had it. @param gone the claim as it was. */
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

const poolOf = (claim: NodeClaim) => claim.metadata.labels?.[labels.nodePool] ?? ''

/** What the claim counts as, and in which pool; undefined while it does not count. */
function whereIs(claim: NodeClaim): string | undefined {
  const bought = boughtFor(claim)
  return bought && `${poolOf(claim)}/${keyOf(bought)}`
}

/** Undefined until the claim says all of it. */
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

/** Offerings that cannot be had now have a price all the same. */
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
