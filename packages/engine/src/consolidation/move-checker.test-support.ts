/** What may be wrong with a move, found without the search and its simulations. */
import type { Pod } from '@tenon/api'
import type { SchedulingInput } from '../input/input.ts'
import type { NewClaim, SchedulingResult } from '../input/result.ts'
import { checkClaims, checkLimits, typesOf } from '../testing/checker/claims.test-support.ts'
import { launchesOf } from '../testing/checker/launches.test-support.ts'
import { checkNodes } from '../testing/checker/nodes.test-support.ts'
import { checkSpread } from '../testing/checker/spread.test-support.ts'
import { checkAffinity, checkAntiAffinity, locate } from '../testing/checker/topology.test-support.ts'
import type { PlannedMove } from './answer.ts'
import type { CandidateInput, ConsolidationQuestion } from './question.ts'
import { without } from './removal.test-support.ts'

/** A question, and the cluster it is about; pods of candidates are only among those that are bound. */
export interface Case {
  readonly input: SchedulingInput
  readonly question: ConsolidationQuestion
}

/** What a claim costs at most, as the provider buys it: reserved, else spot, else on-demand. */
function worstPrice(claim: NewClaim, input: SchedulingInput): number {
  const prices = typesOf(claim, input).flatMap((type) => {
    const launches = launchesOf(claim, type)
    for (const capacityType of ['reserved', 'spot', 'on-demand']) {
      const sold = launches.filter(({ offering }) =>
        offering.requirements.some(({ values }) => values?.includes(capacityType) === true),
      )
      if (sold.length > 0)
        return [Math.max(...sold.map(({ offering }) => offering.pricePerHour ?? Number.NaN))]
    }
    return []
  })
  return prices.length === 0 ? Number.NaN : Math.max(...prices)
}

/** What is wrong with a move. */
export function violationsOf({ input, question }: Case, move: PlannedMove): readonly string[] {
  const { claims, placements } = move
  const gone = question.candidates.filter(({ node }) => move.candidates.includes(node))
  const after = without(input, gone)
  const violations: string[] = []
  if (gone.length !== move.candidates.length)
    violations.push('a node goes that is no candidate, or goes twice')
  const before = gone.reduce((sum, { pricePerHour = 0 }) => sum + pricePerHour, 0)
  const cost = claims.reduce((sum, claim) => sum + worstPrice(claim, after), 0)
  if (claims.length > 0 && !(cost < before)) violations.push(`the price goes from ${before} to ${cost}`)
  for (const [pool, budget] of question.budgets)
    if (gone.filter(({ nodePool }) => nodePool === pool).length > budget)
      violations.push(`the budget of ${pool} is exceeded`)
  const placed = [...placements.map(({ pod }) => pod), ...claims.flatMap(({ pods }) => pods)]
  const result: SchedulingResult = {
    claims: claims.map((claim) => launchable(claim, after)),
    deferred: [],
    placements,
    failures: [],
    undecided: [],
    poolsWithoutTypes: [],
    malformed: [],
    validZones: new Map(),
    pricePerHour: cost,
    firstFitPricePerHour: cost,
    faults: [],
  }
  const isCut = claims.some((claim, index) => claim !== result.claims[index])
  const located = locate(after, result)
  // What was taken back at the very end leaves gaps that pods placed before could not know of.
  const isWhole = placed.length === after.pods.length
  return [
    ...violations,
    ...checkPlaces(after, placed),
    ...checkWaves(move, gone),
    ...checkNodes(after, result),
    ...checkClaims(after, result).filter((text) => !(isCut && text.includes('minValues'))),
    ...checkLimits(after, result),
    ...checkAntiAffinity(after, located),
    ...(isWhole ? checkAffinity(after, located) : []),
    ...(isWhole ? checkSpread(after, located) : []),
  ]
}

/** No pod has two places, and none that runs loses its own. */
function checkPlaces({ pods, origins }: SchedulingInput, placed: readonly Pod[]): readonly string[] {
  const places = new Map<string, number>()
  for (const { metadata } of placed) places.set(metadata.uid ?? '', (places.get(metadata.uid ?? '') ?? 0) + 1)
  return pods.flatMap(({ metadata: { name, uid = '' } }) => {
    const count = places.get(uid) ?? 0
    const ran = (origins?.get(uid) ?? 'pending') !== 'pending'
    return count > 1 || (ran && count === 0) ? [`pod ${name} has ${count} places`] : []
  })
}

/** Waves are the pods that move, each once. */
function checkWaves({ waves }: PlannedMove, gone: readonly CandidateInput[]): readonly string[] {
  if (waves === undefined) return []
  const told = waves.flat().map(({ metadata }) => metadata.uid)
  const moving = gone.flatMap(({ pods }) => pods)
  const isAll = told.length === moving.length && moving.every((uid) => told.includes(uid))
  return isAll ? [] : ['waves are not all pods that move']
}

/** The claim with those of its types that it may launch; others may be there for the sake of minValues. */
function launchable(claim: NewClaim, input: SchedulingInput): NewClaim {
  const instanceTypes = typesOf(claim, input)
    .filter((type) => launchesOf(claim, type).length > 0)
    .map(({ name }) => name)
  return instanceTypes.length === claim.instanceTypes.length ? claim : { ...claim, instanceTypes }
}
