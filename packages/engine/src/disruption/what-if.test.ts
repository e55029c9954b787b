import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { TypeReader } from '../provisioning/instance-rows.ts'
import { difference } from '../provisioning/pod-resources.ts'
import { schedule } from '../provisioning/schedule.ts'
import type { PodOrigin, SchedulingInput } from '../snapshot/input.ts'
import { problemOf } from '../snapshot/problem.ts'
import { cluster } from '../testing/checker/arbitrary-clusters.ts'
import type { CandidateInput } from './question.ts'
import { WhatIf } from './what-if.ts'

const never = { shouldStop: () => false }
const disruption = { simulation: 'disruption' } as const

/** Nodes with pods that could be asked to move, as candidates. */
function candidatesOf(input: SchedulingInput): readonly CandidateInput[] {
  const pool = input.pools[0]?.nodePool.metadata.name ?? ''
  return input.nodes.flatMap(({ name }) => {
    const pods = input.topology.pods.filter(
      ({ spec, status, metadata }) =>
        spec.nodeName === name &&
        metadata.deletionTimestamp === undefined &&
        status?.phase !== 'Succeeded' &&
        status?.phase !== 'Failed',
    )
    if (input.topology.nodes.get(name)?.isCandidate !== true) return []
    return [
      {
        node: name,
        nodePool: pool,
        policy: 'WhenEmptyOrUnderutilized' as const,
        capacityType: 'on-demand',
        instanceType: '',
        pricePerHour: 1,
        disruptionCost: 1,
        capacity: { cpu: 1000, nodes: 1 },
        pods: pods.map(({ metadata }) => metadata.uid ?? ''),
      },
    ]
  })
}

/** The input with pods of these nodes among those to place, and with the origin they then have. */
function withPodsOf(input: SchedulingInput, candidates: readonly CandidateInput[]): SchedulingInput {
  const uids = new Set(candidates.flatMap(({ pods }) => pods))
  const moving = input.topology.pods.filter(({ metadata }) => uids.has(metadata.uid ?? ''))
  const origins = new Map<string, PodOrigin>(input.origins)
  for (const uid of uids) origins.set(uid, 'candidate')
  return {
    ...input,
    pods: [...input.pods, ...moving],
    origins,
    policy: { ...input.policy, ...disruption },
  }
}

/** The same cluster after the nodes are gone, their pods waiting. */
function without(input: SchedulingInput, candidates: readonly CandidateInput[]): SchedulingInput {
  const gone = new Set(candidates.map(({ node }) => node))
  const withPods = withPodsOf(input, candidates)
  return {
    ...withPods,
    nodes: input.nodes.filter(({ name }) => !gone.has(name)),
    pools: input.pools.map((pool, index) =>
      index > 0
        ? pool
        : {
            ...pool,
            usage: candidates.reduce((usage, { capacity }) => difference(usage, capacity), pool.usage),
          },
    ),
    topology: {
      ...input.topology,
      nodes: new Map(
        [...input.topology.nodes].map(([name, node]) => [
          name,
          gone.has(name) ? { ...node, isCandidate: false } : node,
        ]),
      ),
    },
  }
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
    { numRuns: Number(process.env['TENON_PROPERTY_RUNS'] ?? 60), seed: 20_261_122, endOnFailure: true },
  )
})

function withoutImprovement({ policy }: SchedulingInput): SchedulingInput['policy'] {
  const { improvement: _, ...rest } = policy
  return rest
}
