/** One consolidation move: nodes to remove, and their replacements (disruption.md 10). */
import {
  capacityTypes,
  comparePrices,
  labels,
  lowestPrice,
  type PricePerHour,
  type Requirement,
  sumOfPrices,
} from '@tenon/api'
import type { FinishedClaim } from '../scheduling/claims/finished-claims.ts'
import { unmetMinValues } from '../scheduling/types/instance-rows.ts'
import type { Simulation } from '../scheduling/simulation.ts'
import { has } from '../requirements/requirement.ts'
import { parseRequirements, type Requirements } from '../requirements/requirements.ts'
import { type LaunchPrice, LaunchPrices } from './launch-prices.ts'
import type { Move, Refusal } from './question.ts'
import { Shortages } from './shortages.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/** A spot node is only replaced by a spot node if at least so many cheaper spot types fit. */
const spotToSpotTypes = 15

/** A move, or why there is none. */
export type MoveOutcome =
  | { readonly kind: 'move'; readonly move: Move }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

const refused = (refusal: Refusal): MoveOutcome => ({ kind: 'refused', refusal })

export interface MoveRules {
  readonly spotToSpot: boolean
  /** The maximum number of replacements. */
  readonly mostClaims: number
  /** Whether new types must also be cheaper than removed nodes of the same type (disruption.md 9). */
  readonly guardSameTypes: boolean
}

/** Judges simulations as moves. */
export class MoveFinder {
  readonly #whatIf: WhatIf
  readonly #prices: LaunchPrices
  readonly #rules: MoveRules
  readonly #shortages: Shortages

  constructor(whatIf: WhatIf, rules: MoveRules) {
    this.#whatIf = whatIf
    this.#prices = new LaunchPrices(whatIf.compiled)
    this.#rules = rules
    this.#shortages = new Shortages(whatIf)
  }

  /** The move that a simulation without the candidates leads to. */
  judge(candidates: readonly Candidate[], simulation: Simulation): MoveOutcome {
    const outcome = this.#judge(candidates, simulation)
    const [candidate, ...others] = candidates
    if (outcome.kind === 'move' || candidate === undefined || others.length > 0) return outcome
    const { refusal } = outcome
    if (refusal.kind !== 'noCheaper' && refusal.kind !== 'severalNodes') return outcome
    const { spotToSpot } = this.#rules
    const short = this.#shortages.of(candidate, simulation, { price: priceOf(candidates), spotToSpot })
    return short.length === 0 ? outcome : refused({ ...refusal, short })
  }

  #judge(candidates: readonly Candidate[], simulation: Simulation): MoveOutcome {
    if (!simulation.isComplete) return refused({ kind: 'undecided' })
    if (this.#whatIf.stranded(simulation).length > 0)
      return refused({ kind: 'stranded', pods: this.#whatIf.removal(simulation).stranded })
    const { claims } = simulation
    if (claims.length > this.#rules.mostClaims) return refused({ kind: 'severalNodes', count: claims.length })
    const price = priceOf(candidates)
    const least = simulation.cost
    const isAllSpot = candidates.every(({ input }) => input.capacityType === capacityTypes.spot)
    // The cheapest offerings are a lower bound of the price, so the claims need not be finished.
    const isNoCheaper = least.unpriced > 0 || least.pricePerHour >= price
    if (claims.length > 0 && isNoCheaper && !isAllSpot) return refused({ kind: 'noCheaper' })
    const { stranded, ...removal } = this.#whatIf.removal(simulation)
    if (stranded.size > 0) return refused({ kind: 'stranded', pods: stranded })
    const limits = this.#limits(removal.claims, price)
    if (limits === undefined) return refused({ kind: 'noCheaper' })
    const replacements: FinishedClaim[] = []
    for (const [index, claim] of removal.claims.entries()) {
      const replacement = this.#affordable(claim, candidates, limits[index] ?? 0, isAllSpot)
      if ('kind' in replacement) return refused(replacement)
      replacements.push(replacement)
    }
    const cost = sumOfPrices(replacements.map(({ pricePerHour }) => pricePerHour))
    if (cost.unpriced > 0) return refused({ kind: 'noCheaper' })
    return {
      kind: 'move',
      move: {
        claims: replacements,
        placements: removal.placements,
        candidates: candidates.map(({ input }) => input.node),
        savings: price - cost.pricePerHour,
      },
    }
  }

  /** The price that each claim must stay below, so that all of them cost less than `price`. */
  #limits(claims: readonly FinishedClaim[], price: number): readonly number[] | undefined {
    if (claims.length < 2) return claims.map(() => price)
    const least = claims.flatMap((claim) => {
      const types = this.#prices.of(claim, parseRequirements(claim.requirements))
      return lowestPrice(types.map(({ worst }) => worst)) ?? []
    })
    if (least.length < claims.length) return undefined
    const slack = price - least.reduce((sum, each) => sum + each, 0)
    return slack > 0 ? least.map((each) => each + slack / claims.length) : undefined
  }

  /** The claim with only the types whose most expensive allowed offering costs less than `price`. */
  #affordable(
    claim: FinishedClaim,
    candidates: readonly Candidate[],
    price: number,
    isAllSpot: boolean,
  ): Refusal | FinishedClaim {
    const requirements = parseRequirements(claim.requirements)
    const capacity = requirements.get(labels.capacityType)
    const admits = (capacityType: string) => capacity === undefined || has(capacity, capacityType)
    const isSpotToSpot = isAllSpot && admits(capacityTypes.spot)
    if (isSpotToSpot && !this.#rules.spotToSpot) return { kind: 'spotToSpotDisabled' }
    const kept = this.#cheaper(claim, candidates, price, isSpotToSpot)
    if ('kind' in kept) return kept
    const isOpen = admits(capacityTypes.spot) && admits(capacityTypes.onDemand)
    const only = isSpotToSpot || !isOpen ? undefined : this.#only(claim, requirements, kept)
    const capacityType = isSpotToSpot ? capacityTypes.spot : only?.capacityType
    const types = only?.types ?? kept.toSorted(byPrice)
    const names = types.map(({ name }) => name)
    return {
      ...claim,
      requirements: restricted(claim.requirements, names, capacityType),
      instanceTypes: names,
      pricePerHour: types[0]?.cheapest,
    }
  }

  /** The types of a claim that are cheap enough to replace the candidates. */
  #cheaper(
    claim: FinishedClaim,
    candidates: readonly Candidate[],
    price: number,
    isSpotToSpot: boolean,
  ): Refusal | readonly LaunchPrice[] {
    const requirements = parseRequirements(claim.requirements)
    const narrowed = isSpotToSpot ? withOnly(capacityTypes.spot, requirements) : requirements
    // Sorted before the claim is restricted to spot, as that changes prices.
    const sorted = this.#prices.of(claim, requirements)
    const known = new Map(
      (isSpotToSpot ? this.#prices.of(claim, narrowed) : sorted).map((each) => [each.name, each]),
    )
    const cheaper = sorted
      .flatMap(({ name }) => known.get(name) ?? [])
      .filter(({ worst }) => worst !== undefined && worst < price)
    if (cheaper.length === 0) return { kind: 'noCheaper' }
    const missing = unmet(cheaper, narrowed)
    if (missing.size > 0) return { kind: 'minValues', missing }
    if (candidates.length === 1) {
      if (!isSpotToSpot) return cheaper
      if (cheaper.length < spotToSpotTypes) return { kind: 'spotToSpotTypes', found: cheaper.length }
      return cheaper.slice(0, leastPrefix(cheaper, narrowed))
    }
    if (!this.#rules.guardSameTypes) return cheaper
    const ceiling = ceilingOf(cheaper, candidates)
    const kept = cheaper.filter(({ worst }) => comparePrices(worst, ceiling) < 0)
    if (kept.length === 0) return { kind: 'noCheaper' }
    const lost = unmet(kept, narrowed)
    return lost.size > 0 ? { kind: 'minValues', missing: lost } : kept
  }

  /**
   * The capacity type for a claim that allows spot and on-demand, so that a lack of spot does not launch more expensive
   * on-demand capacity. Types without it are dropped, unless minValues need them.
   */
  #only(
    claim: FinishedClaim,
    requirements: Requirements,
    kept: readonly LaunchPrice[],
  ): { readonly capacityType: string; readonly types: readonly LaunchPrice[] } | undefined {
    const instanceTypes = kept.map(({ name }) => name)
    for (const capacityType of [capacityTypes.spot, capacityTypes.onDemand]) {
      const types = this.#prices.of({ ...claim, instanceTypes }, withOnly(capacityType, requirements))
      const sold = types.filter(({ cheapest }) => cheapest !== undefined)
      if (sold.length > 0) return { capacityType, types: unmet(sold, requirements).size > 0 ? types : sold }
    }
    return undefined
  }
}

/** The sum of the known prices per hour of the candidates. */
export function priceOf(candidates: readonly Candidate[]): number {
  return sumOfPrices(candidates.map(({ input }) => input.pricePerHour)).pricePerHour
}

const byPrice = (a: LaunchPrice, b: LaunchPrice) => comparePrices(a.cheapest, b.cheapest)

function unmet(types: readonly LaunchPrice[], requirements: Requirements): ReadonlyMap<string, number> {
  return unmetMinValues(
    types.map(({ type }) => type),
    requirements,
  )
}

/** How many of the cheapest types a spot replacement keeps: fifteen, or as many as minValues need. */
function leastPrefix(types: readonly LaunchPrice[], requirements: Requirements): number {
  let length = spotToSpotTypes
  while (length < types.length && unmet(types.slice(0, length), requirements).size > 0) length++
  return length
}

/**
 * Never remove nodes only to launch one of the same type again.
 * @returns the price that new types must stay below; undefined when there is no such bound.
 */
function ceilingOf(types: readonly LaunchPrice[], candidates: readonly Candidate[]): PricePerHour {
  const offered = new Set(types.map(({ name }) => name))
  const same = candidates.filter(({ input }) => offered.has(input.instanceType))
  // No type is known to cost less than a node of unknown price.
  if (same.some(({ input }) => input.pricePerHour === undefined)) return 0
  return lowestPrice(same.map(({ input }) => input.pricePerHour))
}

function withOnly(capacityType: string, requirements: Requirements): Requirements {
  const only = parseRequirements([{ key: labels.capacityType, operator: 'In', values: [capacityType] }])
  return new Map([...requirements, ...only])
}

/** @param capacityType the only one that is kept, whatever its minValues; undefined keeps all. */
function restricted(
  requirements: readonly Requirement[],
  types: readonly string[],
  capacityType: string | undefined,
): readonly Requirement[] {
  const only: readonly Requirement[] =
    capacityType === undefined ? [] : [{ key: labels.capacityType, operator: 'In', values: [capacityType] }]
  const others = requirements.filter(({ key }) => only.length === 0 || key !== labels.capacityType)
  return [
    ...others.map((each) =>
      each.key === labels.instanceType ? { ...each, values: types.toSorted() } : each,
    ),
    ...only,
  ].toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
}
