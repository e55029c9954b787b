/**
 * Decisions among random prices. `TENON_PROPERTY_RUNS` replaces the number of cases, `TENON_PROPERTY_SEED` chooses
 * others.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, sumOfPrices } from '@tenon/api'
import * as fc from 'fast-check'
import { disruptionResult } from '../../consolidation/answer.ts'
import { examine } from '../../consolidation/examine.ts'
import type { CandidateInput, ConsolidationQuestion } from '../../consolidation/question.ts'
import { movingPods, withPodsOf } from '../../consolidation/removal.test-support.ts'
import { schedule } from '../../scheduling/schedule.ts'
import type { SchedulingInput, SchedulingPolicy } from '../../input/input.ts'
import { problemOf } from '../../scheduling/problem/problem.ts'
import type { NewClaim, SchedulingResult } from '../../input/result.ts'
import type { Profile } from './arbitrary-pods.test-support.ts'
import { price, wildCluster } from './arbitrary-prices.test-support.ts'

const { TENON_PROPERTY_RUNS: runs, TENON_PROPERTY_SEED: seed } = process.env
const parameters = (numRuns: number) => ({
  numRuns: Number(runs ?? numRuns),
  seed: Number(seed ?? 20_261_125),
  endOnFailure: true,
})

const improvements = [undefined, 'planned', 'free'] as const
const profiles: readonly Profile[] = [
  { topology: false, volumes: false, contradictions: false },
  { topology: true, volumes: false, contradictions: false },
  { topology: true, volumes: true, contradictions: true },
]
const clusters = fc.constantFrom(...profiles).chain(wildCluster)

function decided(input: SchedulingInput, improvement: SchedulingPolicy['improvement']): SchedulingResult {
  const { improvement: _, ...policy } = input.policy
  return schedule({ ...input, policy: { ...policy, ...(improvement && { improvement }) } })
}

const costOf = (claims: readonly NewClaim[]) => sumOfPrices(claims.map(({ pricePerHour }) => pricePerHour))

test('RPT-31 no decision throws, and every plan has a finite price', () => {
  fc.assert(
    fc.property(clusters, (input) => {
      for (const improvement of improvements) {
        const result = decided(input, improvement)
        assert.deepEqual(result.faults, [])
        assert.ok(Number.isFinite(result.pricePerHour) && Number.isFinite(result.firstFitPricePerHour))
        const claimed = result.claims.flatMap(({ pods }) => pods)
        const told = [
          ...claimed,
          ...result.placements.map(({ pod }) => pod),
          ...result.failures.map(({ pod }) => pod),
        ]
        assert.equal(new Set(told).size, input.pods.length)
        assert.equal(costOf(result.claims).pricePerHour, result.pricePerHour)
        for (const { pricePerHour } of result.claims)
          assert.ok(pricePerHour === undefined || Number.isFinite(pricePerHour))
      }
    }),
    parameters(150),
  )
})

test('RPT-47 a planned plan never costs more than plain first fit, and leaves out nobody that it places', () => {
  let cheaper = 0
  fc.assert(
    fc.property(clusters, (input) => {
      const plain = decided(input, undefined)
      const planned = decided(input, 'planned')
      const [before, after] = [costOf(plain.claims), costOf(planned.claims)]
      assert.ok(after.unpriced <= before.unpriced, `${after.unpriced} unpriced instead of ${before.unpriced}`)
      const rounding = 1e-9 * Math.max(1, before.pricePerHour)
      assert.ok(
        after.pricePerHour <= before.pricePerHour + rounding,
        `${after.pricePerHour} instead of ${before.pricePerHour}`,
      )
      // Claims whose list of types had to be cut too short are among what first fit would have cost.
      assert.ok(planned.firstFitPricePerHour >= before.pricePerHour - rounding)
      const left = new Set(plain.failures.map(({ pod }) => pod))
      for (const { pod } of planned.failures) assert.ok(left.has(pod), `${pod.metadata.uid} is left out`)
      if (after.pricePerHour < before.pricePerHour - rounding) cheaper++
    }),
    parameters(250),
  )
  assert.ok(cheaper > 0)
})

const consolidations = clusters.chain((whole) => {
  const input = { ...whole, pods: whole.pods.slice(0, 2) }
  const names = input.pools.map(({ nodePool }) => nodePool.metadata.name)
  const candidate = (node: SchedulingInput['nodes'][number]): fc.Arbitrary<CandidateInput> =>
    fc.record({
      node: fc.constant(node.name),
      nodePool: fc.constantFrom(...names),
      policy: fc.constantFrom('WhenEmptyOrUnderutilized' as const, 'Balanced' as const),
      capacityType: fc.constant(node.labels[labels.capacityType] ?? ''),
      instanceType: fc.constant(node.labels[labels.instanceType] ?? ''),
      pricePerHour: price,
      disruptionCost: fc.constantFrom(1, 3, 1e6),
      capacity: fc.constant({ cpu: 4000, memory: 8 * 2 ** 30, nodes: 1 }),
      pods: fc.constant(movingPods(input, node.name)),
    })
  const ready = input.nodes.filter(({ initialized }) => initialized)
  return fc
    .record({
      candidates: fc.tuple(...ready.map(candidate)),
      search: fc.constantFrom('single' as const, 'multi' as const, 'global' as const, 'survey' as const),
      improvement: fc.constantFrom(...improvements),
      spotToSpot: fc.boolean(),
      cost: fc.constantFrom(0, 1e-12, 10, 1e12),
    })
    .map(({ candidates, search, improvement, spotToSpot, cost }) => {
      const question: ConsolidationQuestion = {
        kind: 'consolidate',
        search,
        candidates,
        budgets: new Map(names.map((name) => [name, 100])),
        totals: new Map(names.map((name) => [name, { cost, disruption: 20 }])),
        spotToSpot,
        unseenPools: [],
        ...(improvement && { improvement }),
      }
      return { input, question }
    })
})

test('RPT-31 no search for consolidation throws, and what it replaces costs more for sure', () => {
  fc.assert(
    fc.property(consolidations, ({ input, question }) => {
      const all = withPodsOf(input, question.candidates)
      const never = { shouldStop: () => false }
      const result = disruptionResult(all, question, examine(problemOf(all), question, never))
      assert.equal(result.kind, 'consolidation')
      for (const { candidates, claims, savings } of result.moves) {
        assert.ok(Number.isFinite(savings))
        const gone = question.candidates.filter(({ node }) => candidates.includes(node))
        const known = sumOfPrices(gone.map(({ pricePerHour }) => pricePerHour)).pricePerHour
        const launched = costOf(claims)
        assert.equal(launched.unpriced, 0)
        assert.ok(claims.length === 0 || launched.pricePerHour < known)
      }
    }),
    parameters(300),
  )
})
