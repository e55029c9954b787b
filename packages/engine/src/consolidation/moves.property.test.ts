import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import * as fc from 'fast-check'
import type { SchedulingInput } from '../input/input.ts'
import { problemOf } from '../scheduling/problem/problem.ts'
import { cluster } from '../testing/checker/arbitrary-clusters.test-support.ts'
import { disruptionResult } from './answer.ts'
import { examine } from './examine.ts'
import { type Case, violationsOf } from './move-checker.test-support.ts'
import type { CandidateInput, ConsolidationQuestion } from './question.ts'
import { movingPods, withPodsOf } from './removal.test-support.ts'

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
  const result = disruptionResult(
    all,
    question,
    examine(problemOf(all), question, { shouldStop: () => false }),
  )
  assert.equal(result.kind, 'consolidation')
  return result
}

test('no move raises the price, exceeds a budget or limit, or strands a pod, and runs agree', () => {
  const seen = { deleted: 0, replaced: 0, several: 0 }
  fc.assert(
    fc.property(cases, (given) => {
      const result = answerTo(given)
      assert.deepEqual(answerTo(given), result)
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

test('a search that leaves out what saves too little finds what saves enough', () => {
  let found = 0
  const least = pick(0.01, 0.1, 0.5, 2)
  fc.assert(
    fc.property(cases, least, ({ input, question }, leastSavings) => {
      const whole: Case = { input, question: { ...question, search: 'global' } }
      const [best] = answerTo(whole).moves
      if (best === undefined || best.savings < leastSavings) return
      found++
      const limited = answerTo({ input, question: { ...whole.question, leastSavings } })
      assert.deepEqual(limited.moves[0], best)
    }),
    { numRuns: Number(runs ?? 300), seed: Number(seed ?? 20_261_122), endOnFailure: true },
  )
  assert.ok(found > 0)
})
