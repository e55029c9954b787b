import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import * as fc from 'fast-check'
import { problemOf } from '../scheduling/problem/problem.ts'
import { anAppPod, aType } from '../testing/builders.test-support.ts'
import { disruptionResult, type PlannedMove } from './answer.ts'
import { asked, type Instance } from './consolidation.test-support.ts'
import { examine } from './examine.ts'
import { violationsOf } from './move-checker.test-support.ts'

const { TENON_PROPERTY_RUNS: runs, TENON_PROPERTY_SEED: seed } = process.env
const zones = ['zone-1', 'zone-2', 'zone-3']
const types = [5, 9.6, 10].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
const [, , ten] = types as [InstanceType, InstanceType, InstanceType]

const inZone = (zone: string, cpu: string) => anAppPod(zone, { nodeSelector: { [labels.zone]: zone } }, cpu)
const large = fc.constantFrom('4100m', '4300m', '4600m', '4700m')

/** Full nodes that cost a little too much, and a node that stays with room for a pod of any of them, but not for two. */
const zoneOfNodes = (zone: string): fc.Arbitrary<readonly Instance[]> =>
  fc
    .record({
      full: fc.array(fc.tuple(large, large), { minLength: 1, maxLength: 9 }),
      roomy: fc.option(large),
    })
    .map(({ full, roomy }) => {
      const node = (cpus: readonly string[]): Instance => ({
        type: ten,
        zone,
        pods: cpus.map((cpu) => inZone(zone, cpu)),
      })
      return [...full.map(node), ...(roomy === null ? [] : [{ ...node([roomy]), stays: true }])]
    })

/** All moves as one. A pod that waits has the same place in each. */
function togetherOf(moves: readonly PlannedMove[]): PlannedMove {
  const places = new Map(
    moves.flatMap(({ placements }) => placements.map((place) => [place.pod.metadata.uid, place])),
  )
  return {
    candidates: moves.flatMap(({ candidates }) => candidates),
    claims: moves.flatMap(({ claims }) => claims),
    placements: [...places.values()],
    savings: moves.reduce((sum, { savings }) => sum + savings, 0),
  }
}

test('moves that are found at once can be carried out at once', () => {
  let several = 0
  const stories = fc.record({
    instances: fc.tuple(...zones.map(zoneOfNodes)),
    waiting: fc.array(fc.record({ zone: fc.constantFrom(...zones), cpu: fc.constantFrom('300m', '4100m') }), {
      maxLength: 2,
    }),
    budget: fc.constantFrom(1, 3, 100, 100),
    improvement: fc.constantFrom(undefined, 'planned' as const),
  })
  fc.assert(
    fc.property(stories, ({ instances, waiting, budget, improvement }) => {
      const pending = waiting.map(({ zone, cpu }) => inZone(zone, cpu))
      const { input, question } = asked('global', {
        types,
        instances: Object.fromEntries(instances.flat().map((each, at) => [`node-${at}`, each])),
        pending,
        budgets: { default: budget },
        ...(improvement && { improvement }),
      })
      const answer = examine(problemOf(input), question, { shouldStop: () => false })
      const result = disruptionResult(input, question, answer)
      assert.equal(result.kind, 'consolidation')
      if (result.moves.length < 2) return
      several++
      assert.deepEqual(
        violationsOf({ input: { ...input, pods: pending }, question }, togetherOf(result.moves)),
        [],
      )
    }),
    { numRuns: Number(runs ?? 60), seed: Number(seed ?? 20_261_127), endOnFailure: true },
  )
  if (runs === undefined) assert.ok(several > 5, `only ${several} with several moves`)
})
