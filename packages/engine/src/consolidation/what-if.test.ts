import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { TypeReader } from '../scheduling/types/instance-rows.ts'
import { schedule } from '../scheduling/schedule.ts'
import type { SchedulingInput } from '../input/input.ts'
import { problemOf } from '../scheduling/problem/problem.ts'
import { cluster } from '../testing/checker/arbitrary-clusters.test-support.ts'
import type { CandidateInput } from './question.ts'
import { movingPods, without, withPodsOf } from './removal.test-support.ts'
import { WhatIf } from './what-if.ts'

const never = { shouldStop: () => false }

/** Nodes with pods that could be asked to move, as candidates. */
function candidatesOf(input: SchedulingInput): readonly CandidateInput[] {
  const pool = input.pools[0]?.nodePool.metadata.name ?? ''
  return input.nodes.flatMap(({ name }) =>
    input.topology.nodes.get(name)?.isCandidate === true
      ? [
          {
            node: name,
            nodePool: pool,
            policy: 'WhenEmptyOrUnderutilized' as const,
            capacityType: 'on-demand',
            instanceType: '',
            pricePerHour: 1,
            disruptionCost: 1,
            capacity: { cpu: 1000, nodes: 1 },
            pods: movingPods(input, name),
          },
        ]
      : [],
  )
}

test('a question on common ground is answered as if it were the only one', () => {
  const profile = { topology: true, volumes: true, contradictions: false }
  fc.assert(
    fc.property(cluster(profile), (input) => {
      const candidates = candidatesOf(input)
      if (candidates.length === 0) return
      const all = withPodsOf(input, candidates)
      const problem = problemOf(all)
      const whatIf = new WhatIf(problem, candidates, new TypeReader(), never)
      const sets = [
        ...whatIf.candidates.map((each) => [each]),
        whatIf.candidates,
        whatIf.candidates.slice(0, 1),
      ]
      for (const set of sets) {
        const removal = whatIf.without(set, (simulation) => ({
          ending: 'undo',
          value: whatIf.removal(simulation),
        }))
        const alone = without(
          input,
          set.map(({ input: candidate }) => candidate),
        )
        const expected = schedule({ ...alone, policy: withoutImprovement(alone) })
        const uid = (pod: number) => problem.uids[pod]
        const pairs = Array.from({ length: removal.placements.length / 2 }, (_, i) => [
          uid(removal.placements[2 * i] as number),
          problem.nodes[removal.placements[2 * i + 1] as number]?.name,
        ])
        assert.deepEqual(
          pairs,
          expected.placements.map(({ pod, node }) => [pod.metadata.uid, node]),
        )
        assert.deepEqual(
          removal.claims.map(({ pods, instanceTypes }) => ({ pods: pods.map(uid), instanceTypes })),
          expected.claims.map(({ pods, instanceTypes }) => ({
            pods: pods.map(({ metadata }) => metadata.uid),
            instanceTypes,
          })),
        )
        const pending = new Set(input.pods.map(({ metadata }) => metadata.uid))
        assert.deepEqual(
          [...removal.stranded.keys()].map(uid),
          expected.failures.flatMap(({ pod: { metadata } }) =>
            pending.has(metadata.uid) && (input.origins?.get(metadata.uid ?? '') ?? 'pending') === 'pending'
              ? []
              : [metadata.uid],
          ),
        )
      }
    }),
    { numRuns: Number(process.env['TENON_PROPERTY_RUNS'] ?? 250), seed: 400, endOnFailure: true },
  )
})

function withoutImprovement({ policy }: SchedulingInput): SchedulingInput['policy'] {
  const { improvement: _, ...rest } = policy
  return rest
}
