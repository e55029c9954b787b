/** Which zone a new node goes to, if several offer it at the same price. */
import {
  isConditionTrue,
  isKnownPrice,
  labels,
  type NodeClaim,
  type OfferingRef,
  ownValue,
  type PricePerHour,
} from '@tenon/api'
import type { ClaimOffering } from '@tenon/engine'
import type { Caches } from '../state/caches.ts'
import { poolOf } from '../state/nodepools/managed-pool.ts'
import { type PoolWishes, poolWishes } from '../state/nodepools/pool-annotations.ts'

/** On a NodeClaim: what it costs more per hour, so that the zones of its NodePool are in balance. */
export const balanceCostAnnotation = 'tenon.sh/zone-balance-cost'

/**
 * What the node costs more per hour than in the cheapest zone, as its NodePool accepts. A node is not moved to save it.
 * 0 if that is not known, or the NodePool asks for balance no more.
 */
export function balanceCost({ metadata }: NodeClaim, { zoneBalance }: PoolWishes): number {
  if (zoneBalance === undefined) return 0
  const cost = Number(ownValue(metadata.annotations, balanceCostAnnotation))
  return isKnownPrice(cost) ? cost : 0
}

export interface ZoneChoice {
  readonly ref: OfferingRef
  readonly pricePerHour: PricePerHour
  /** Whether there is another zone that would do as well. */
  readonly isBalanced: boolean
  /** Price per hour above that of the cheapest offering. */
  readonly morePerHour: number
}

/** Prices that were computed may differ by this part although they are meant to be equal. */
const rounding = 1e-9

/**
 * Counts the nodes of each NodePool by zone: instances, and launches that have chosen a zone. Nodes that are being
 * replaced or deleted do not count, as their successors take their places.
 */
export class ZoneBalance {
  readonly #nodePools: Caches['nodePools']
  /** Pool and zone by UID of the claim. */
  readonly #places = new Map<string, { readonly pool: string; readonly zone: string }>()
  readonly #counts = new Map<string, Map<string, number>>()

  constructor({ nodeClaims, nodePools }: Pick<Caches, 'nodeClaims' | 'nodePools'>) {
    this.#nodePools = nodePools
    nodeClaims.onChange(({ kind, object }) => {
      const { deletionTimestamp, labels: tags } = object.metadata
      const isLeaving = deletionTimestamp !== undefined || isConditionTrue(object, 'DisruptionReason')
      if (kind === 'deleted' || isLeaving) this.forget(object)
      // Until the label is stored, the launch counts where it was begun.
      else if (tags?.[labels.zone] !== undefined) this.count(object, tags[labels.zone] ?? '')
    })
  }

  /**
   * Chooses the zone with the fewest nodes, ties by name.
   * @param usable offerings of the claim that may be tried, cheapest first.
   */
  choose(claim: NodeClaim, usable: Iterable<ClaimOffering>): ZoneChoice | undefined {
    const alike = this.#alike(claim, usable)
    const [cheapest] = alike
    if (cheapest === undefined) return undefined
    const counts = this.#counts.get(poolOf(claim))
    const nodesIn = (offering: ClaimOffering) => counts?.get(offering.ref.zone) ?? 0
    let best = cheapest
    for (const each of alike) {
      const { zone } = each.ref
      const fewer = nodesIn(each) - nodesIn(best)
      if (fewer < 0 || (fewer === 0 && zone < best.ref.zone)) best = each
    }
    return {
      ref: best.ref,
      pricePerHour: best.pricePerHour,
      isBalanced: alike.some(({ ref }) => ref.zone !== best.ref.zone),
      morePerHour: (best.pricePerHour ?? 0) - (cheapest.pricePerHour ?? 0),
    }
  }

  /** The claim has an instance in the zone, or is launched there. */
  count(claim: NodeClaim, zone: string): void {
    const { uid, name } = claim.metadata
    const place = { pool: poolOf(claim), zone }
    const before = this.#places.get(uid ?? name)
    if (before?.pool === place.pool && before.zone === zone) return
    this.forget(claim)
    this.#places.set(uid ?? name, place)
    this.#add(place, 1)
  }

  /** The claim has no instance, or is leaving. */
  forget({ metadata }: NodeClaim): void {
    const uid = metadata.uid ?? metadata.name
    const place = this.#places.get(uid)
    if (place === undefined) return
    this.#places.delete(uid)
    this.#add(place, -1)
  }

  /** Offerings between which only the zone decides. Of unknown prices, those of one instance type. */
  #alike(claim: NodeClaim, usable: Iterable<ClaimOffering>): readonly ClaimOffering[] {
    const pool = this.#nodePools.get({ name: poolOf(claim) })
    const tolerance = (pool && poolWishes(pool).zoneBalance) ?? 0
    const alike: ClaimOffering[] = []
    for (const offering of usable) {
      const [cheapest = offering] = alike
      const price = cheapest.pricePerHour
      const isAlike =
        price === undefined || offering.pricePerHour === undefined
          ? price === offering.pricePerHour && cheapest.ref.instanceType === offering.ref.instanceType
          : offering.pricePerHour <= price * (1 + tolerance + rounding)
      if (!isAlike) break
      alike.push(offering)
    }
    return alike
  }

  #add({ pool, zone }: { readonly pool: string; readonly zone: string }, nodes: number): void {
    const counts = this.#counts.get(pool) ?? new Map<string, number>()
    const left = (counts.get(zone) ?? 0) + nodes
    if (left > 0) counts.set(zone, left)
    else counts.delete(zone)
    if (counts.size > 0) this.#counts.set(pool, counts)
    else this.#counts.delete(pool)
  }
}
