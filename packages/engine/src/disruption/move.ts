/** One move of consolidation: nodes that go, and what comes in their place (disruption.md 10). */
import { capacityTypes, labels, type Requirement } from '@tenon/api'
import type { FinishedClaim } from '../provisioning/finished-claims.ts'
import { unmetMinValues } from '../provisioning/instance-rows.ts'
import type { Simulation } from '../provisioning/simulation.ts'
import { has } from '../requirements/requirement.ts'
import { parseRequirements, type Requirements } from '../requirements/requirements.ts'
import { type LaunchPrice, LaunchPrices } from './launch-prices.ts'
import type { Move, Refusal } from './question.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/** Types that a spot node must have to choose from before it is replaced by another spot node. */
const spotToSpotTypes = 15

/** A move, or why there is none. */
export type MoveOutcome =
  | { readonly kind: 'move'; readonly move: Move }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

const refused = (refusal: Refusal): MoveOutcome => ({ kind: 'refused', refusal })

export interface MoveRules {
  readonly spotToSpot: boolean
  /** Most new nodes in place of the old ones. */
  readonly mostClaims: number
  /** Whether new types must also be cheaper than removed nodes of the same type (disruption.md 9). */
  readonly guardSameTypes: boolean
}

/** Judges simulations as moves. */
export class MoveFinder {
  readonly #whatIf: WhatIf
  readonly #prices: LaunchPrices
  readonly #rules: MoveRules

  constructor(whatIf: WhatIf, rules: MoveRules) {
    this.#whatIf = whatIf
    this.#prices = new LaunchPrices(whatIf.compiled)
    this.#rules = rules
  }

  /** What a simulation without the candidates comes to. */
  judge(candidates: readonly Candidate[], simulation: Simulation): MoveOutcome {
    if (!simulation.isComplete) return refused({ kind: 'undecided' })
    if (this.#whatIf.stranded(simulation).length > 0)
      return refused({ kind: 'stranded', pods: this.#whatIf.removal(simulation).stranded })
    const { claims } = simulation
    if (claims.length > this.#rules.mostClaims) return refused({ kind: 'severalNodes', count: claims.length })
    const price = priceOf(candidates)
    const dearest = simulation.pricePerHour
    const isAllSpot = candidates.every(({ input }) => input.capacityType === capacityTypes.spot)
    // No launch costs less than the cheapest offerings; finishing claims would be for nothing.
    if (claims.length > 0 && dearest >= price && !isAllSpot) return refused({ kind: 'noCheaper' })
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
    return {
      kind: 'move',
      move: {
        claims: replacements,
        placements: removal.placements,
        candidates: candidates.map(({ input }) => input.node),
        savings: price - replacements.reduce((sum, { pricePerHour }) => sum + finite(pricePerHour), 0),
      },
    }
  }

  /** What each claim must cost less than, so that all of them cost less than `price`. */
  #limits(claims: readonly FinishedClaim[], price: number): readonly number[] | undefined {
    if (claims.length < 2) return claims.map(() => price)
    const least = claims.map((claim) =>
      this.#prices
        .of(claim, parseRequirements(claim.requirements))
        .reduce((min, { worst }) => Math.min(min, worst), Number.POSITIVE_INFINITY),
    )
    const slack = price - least.reduce((sum, each) => sum + each, 0)
    return slack > 0 ? least.map((each) => each + slack / claims.length) : undefined
  }

  /** The claim with only those types that cost less than `price` in any case. */
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
    const narrowed = isSpotToSpot ? withSpotOnly(requirements) : requirements
    // The order is made before the claim is restricted to spot, and kept.
    const sorted = this.#prices.of(claim, requirements)
    const known = new Map(
      (isSpotToSpot ? this.#prices.of(claim, narrowed) : sorted).map((each) => [each.name, each]),
    )
    const launchable = sorted.flatMap(({ name }) => {
      const type = known.get(name)
      return type === undefined || (isSpotToSpot && type.worst === Number.POSITIVE_INFINITY) ? [] : [type]
    })
    const cheaper = launchable.filter(({ worst }) => worst < price)
    if (cheaper.length === 0) return { kind: 'noCheaper' }
    const missing = unmet(cheaper, narrowed)
    if (missing.size > 0) return { kind: 'minValues', missing }
    let kept: readonly LaunchPrice[] = cheaper
    if (isSpotToSpot && candidates.length === 1) {
      if (cheaper.length < spotToSpotTypes) return { kind: 'spotToSpotTypes', found: cheaper.length }
      kept = cheaper.slice(0, leastPrefix(cheaper, narrowed))
    }
    if (this.#rules.guardSameTypes && candidates.length > 1) {
      const ceiling = ceilingOf(kept, candidates)
      kept = kept.filter(({ worst }) => worst < ceiling)
      if (kept.length === 0) return { kind: 'noCheaper' }
      const lost = unmet(kept, narrowed)
      if (lost.size > 0) return { kind: 'minValues', missing: lost }
    }
    const isSpotOnly = isSpotToSpot || (admits(capacityTypes.spot) && admits(capacityTypes.onDemand))
    const names = kept.map(({ name }) => name)
    return {
      ...claim,
      requirements: restricted(claim.requirements, names, isSpotOnly),
      instanceTypes: names,
      pricePerHour: kept[0]?.cheapest ?? 0,
    }
  }
}

/** What nodes cost per hour. */
export function priceOf(candidates: readonly Candidate[]): number {
  return candidates.reduce((sum, { input }) => sum + input.pricePerHour, 0)
}

const finite = (price: number) => (Number.isFinite(price) ? price : 0)

function unmet(types: readonly LaunchPrice[], requirements: Requirements): ReadonlyMap<string, number> {
  return unmetMinValues(
    types.map(({ type }) => type),
    requirements,
  )
}

/** How many of the cheapest types a spot node keeps: fifteen, or as many as minValues need. */
function leastPrefix(types: readonly LaunchPrice[], requirements: Requirements): number {
  let length = spotToSpotTypes
  while (length < types.length && unmet(types.slice(0, length), requirements).size > 0) length++
  return length
}

/** Never remove nodes to launch one that equals a node which is there already. */
function ceilingOf(types: readonly LaunchPrice[], candidates: readonly Candidate[]): number {
  const offered = new Set(types.map(({ name }) => name))
  return candidates
    .filter(({ input }) => offered.has(input.instanceType))
    .reduce((least, { input }) => Math.min(least, input.pricePerHour), Number.POSITIVE_INFINITY)
}

function withSpotOnly(requirements: Requirements): Requirements {
  const spot = parseRequirements([{ key: labels.capacityType, operator: 'In', values: [capacityTypes.spot] }])
  return new Map([...requirements, ...spot])
}

function restricted(
  requirements: readonly Requirement[],
  types: readonly string[],
  isSpotOnly: boolean,
): readonly Requirement[] {
  const isCapacity = ({ key }: Requirement) => key === labels.capacityType
  const values = [capacityTypes.spot]
  const least = requirements.find(isCapacity)?.minValues
  const spot: Requirement = {
    key: labels.capacityType,
    operator: 'In',
    values,
    ...(least !== undefined && { minValues: least }),
  }
  const others = isSpotOnly ? requirements.filter((each) => !isCapacity(each)) : requirements
  return [
    ...others.map((each) =>
      each.key === labels.instanceType ? { ...each, values: types.toSorted() } : each,
    ),
    ...(isSpotOnly ? [spot] : []),
  ].toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
}
