import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import * as fc from 'fast-check'
import type { SchedulingInput } from '../snapshot/input.ts'
import { problemOf } from '../snapshot/problem.ts'
import type { NewClaim, SchedulingResult } from '../snapshot/result.ts'
import { cluster } from '../testing/checker/arbitrary-clusters.ts'
import { checkClaims, checkLimits, typesOf } from '../testing/checker/claims.ts'
import { launchesOf } from '../testing/checker/launches.ts'
import { checkNodes } from '../testing/checker/nodes.ts'
import { checkSpread } from '../testing/checker/spread.ts'
import { checkAffinity, checkAntiAffinity, locate } from '../testing/checker/topology.ts'
import { disruptionResult, type PlannedMove } from './answer.ts'
import { examine } from './examine.ts'
import type { CandidateInput, ConsolidationQuestion } from './question.ts'
import { movingPods, without, withPodsOf } from './removal.test-support.ts'

interface Case {
  readonly input: SchedulingInput
  readonly question: ConsolidationQuestion
}

const { TENON_PROPERTY_RUNS: runs, TENON_PROPERTY_SEED: seed } = process.env
const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)

/** A random cluster with few pods that wait, whose nodes belong to its NodePools, and cost something. */
const cases: fc.Arbitrary<Case> = fc
  .tuple(cluster({ topology: true, volumes: true, contradictions: false }), pick(0, 0, 1, 3))
  .chain(([whole, waiting]) => {
    const input = { ...whole, pods: whole.pods.slice(0, waiting) }
    const names = input.pools.map(({ nodePool }) => nodePool.metadata.name)
    const candidate = (node: SchedulingInput['nodes'][number]): fc.Arbitrary<CandidateInput> =>
      fc.record({
        node: fc.constant(node.name),
        nodePool: pick(...names),
        policy: pick('WhenEmptyOrUnderutilized' as const, 'Balanced' as const),
        capacityType: fc.constant(node.labels[labels.capacityType] ?? ''),
        instanceType: fc.constant(node.labels[labels.instanceType] ?? ''),
        pricePerHour: pick(0, 0.05, 0.4, 2, 9),
        disruptionCost: pick(1.5, 3, 10),
        capacity: fc.constant({ cpu: 4000, memory: 8 * 2 ** 30, nodes: 1 }),
        pods: fc.constant(movingPods(input, node.name)),
      })
    const ready = input.nodes.filter(({ initialized }) => initialized)
    return fc
      .record({
        candidates: fc.tuple(...ready.map(candidate)),
        search: pick('single' as const, 'multi' as const, 'global' as const),
        improvement: pick(undefined, 'planned' as const, 'free' as const),
        budget: pick(0, 1, 2, 3, 100),
        spotToSpot: fc.boolean(),
      })
      .map(({ candidates, search, improvement, budget, spotToSpot }): Case => {
        const question: ConsolidationQuestion = {
          kind: 'consolidate',
          search,
          candidates,
          budgets: new Map(names.map((name) => [name, budget])),
          totals: new Map(names.map((name) => [name, { cost: 10, disruption: 20 }])),
          spotToSpot,
          unseenPools: [],
          ...(improvement && { improvement }),
        }
        return { input, question }
      })
  })

function answerTo({ input, question }: Case) {
  const all = withPodsOf(input, question.candidates)
  const result = disruptionResult(all, examine(problemOf(all), question, { shouldStop: () => false }))
  assert.equal(result.kind, 'consolidation')
  return result
}

/** What a claim costs at most, as the provider buys it: reserved, else spot, else on-demand. */
function worstPrice(claim: NewClaim, input: SchedulingInput): number {
  const prices = typesOf(claim, input).flatMap((type) => {
    const launches = launchesOf(claim, type)
    for (const capacityType of ['reserved', 'spot', 'on-demand']) {
      const sold = launches.filter(({ offering }) =>
        offering.requirements.some(({ values }) => values?.includes(capacityType) === true),
      )
      if (sold.length > 0) return [Math.max(...sold.map(({ offering }) => offering.pricePerHour))]
    }
    return []
  })
  return prices.length === 0 ? Number.NaN : Math.max(...prices)
}

/** What is wrong with a move. */
function violationsOf({ input, question }: Case, move: PlannedMove): readonly string[] {
  const { claims, placements } = move
  const gone = question.candidates.filter(({ node }) => move.candidates.includes(node))
  const after = without(input, gone)
  const violations: string[] = []
  const before = gone.reduce((sum, { pricePerHour }) => sum + pricePerHour, 0)
  const cost = claims.reduce((sum, claim) => sum + worstPrice(claim, after), 0)
  if (claims.length > 0 && !(cost < before)) violations.push(`the price goes from ${before} to ${cost}`)
  for (const [pool, budget] of question.budgets)
    if (gone.filter(({ nodePool }) => nodePool === pool).length > budget)
      violations.push(`the budget of ${pool} is exceeded`)
  const placed = [...placements.map(({ pod }) => pod), ...claims.flatMap(({ pods }) => pods)]
  const places = new Map<string, number>()
  for (const { metadata } of placed) places.set(metadata.uid ?? '', (places.get(metadata.uid ?? '') ?? 0) + 1)
  for (const { metadata } of after.pods) {
    const count = places.get(metadata.uid ?? '') ?? 0
    const ran = (after.origins?.get(metadata.uid ?? '') ?? 'pending') !== 'pending'
    if (count > 1 || (ran && count === 0)) violations.push(`pod ${metadata.name} has ${count} places`)
  }
  const result: SchedulingResult = {
    claims: claims.map((claim) => launchable(claim, after)),
    placements,
    failures: [],
    undecided: [],
    poolsWithoutTypes: [],
    malformed: [],
    validZones: new Map(),
    pricePerHour: cost,
    firstFitPricePerHour: cost,
  }
  const isCut = claims.some((claim, index) => claim !== result.claims[index])
  const located = locate(after, result)
  // What was taken back at the very end leaves gaps that pods placed before could not know of.
  const isWhole = placed.length === after.pods.length
  return [
    ...violations,
    ...checkNodes(after, result),
    ...checkClaims(after, result).filter((text) => !(isCut && text.includes('minValues'))),
    ...checkLimits(after, result),
    ...checkAntiAffinity(after, located),
    ...(isWhole ? checkAffinity(after, located) : []),
    ...(isWhole ? checkSpread(after, located) : []),
  ]
}

/** The claim with those of its types that it may launch; others may be there for the sake of minValues. */
function launchable(claim: NewClaim, input: SchedulingInput): NewClaim {
  const instanceTypes = typesOf(claim, input)
    .filter((type) => launchesOf(claim, type).length > 0)
    .map(({ name }) => name)
  return instanceTypes.length === claim.instanceTypes.length ? claim : { ...claim, instanceTypes }
}

test('no move raises the price, exceeds a budget or limit, or strands a pod, and runs agree', () => {
  const seen = { deleted: 0, replaced: 0, several: 0 }
  fc.assert(
    fc.property(cases, (given) => {
      const result = answerTo(given)
      assert.deepEqual(answerTo(given), result)
      assert.ok(result.moves.length <= 1)
      for (const move of result.moves) {
        if (move.candidates.length > 1) seen.several++
        if (move.claims.length > 0) seen.replaced++
        else seen.deleted++
        assert.deepEqual(violationsOf(given, move), [])
      }
    }),
    { numRuns: Number(runs ?? 400), seed: Number(seed ?? 20_261_122), endOnFailure: true },
  )
  if (runs === undefined)
    for (const [kind, count] of Object.entries(seen)) assert.ok(count > 5, `only ${count} moves: ${kind}`)
})
