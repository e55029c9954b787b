/** What differs when a disruption is tried out (scheduling.md 14, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod } from '@tenon/api'
import type { NodeInput, PodOrigin, SchedulingInput } from '../../input/input.ts'
import {
  aCluster,
  anInput,
  aNode,
  aPod,
  aPool,
  aPoolInput,
  aType,
  boundTo,
  failureTexts,
  placedOn,
  podNames,
  strictPolicy,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const disruption = { ...strictPolicy, simulation: 'disruption' as const }

/** Pods with where they come from. */
function coming(from: Readonly<Partial<Record<PodOrigin, readonly Pod[]>>>) {
  const pods = Object.values(from).flat()
  const origins = new Map(
    Object.entries(from).flatMap(([origin, list]) =>
      list.map((pod): [string, PodOrigin] => [pod.metadata.uid ?? '', origin as PodOrigin]),
    ),
  )
  return { pods, origins }
}

describe('nodes that are not initialized', () => {
  /** A node that is starting, where nothing that can be launched is large enough. */
  const starting: Partial<SchedulingInput> = {
    nodes: [aNode('starting', { initialized: false })],
    pools: [aPoolInput(aPool(), [aType('small', 2, 8)])],
  }

  test('SCH-148 a pod of a candidate may not rely on one, a pod of a deleting node may', () => {
    const run = (origin: PodOrigin, policy = disruption) => {
      const pod = aPod({ cpu: '3' })
      const result = schedule(anInput({ ...starting, ...coming({ [origin]: [pod] }), policy }))
      assert.deepEqual(result.claims, [])
      return { result, pod }
    }
    const candidate = run('candidate')
    assert.deepEqual(placedOn(candidate.result), {})
    assert.deepEqual(Object.keys(failureTexts(candidate.result)), [candidate.pod.metadata.name])
    assert.match(failureTexts(candidate.result)[candidate.pod.metadata.name] ?? '', /initialized/)

    const deleting = run('deleting')
    assert.deepEqual(placedOn(deleting.result), { [deleting.pod.metadata.name]: 'starting' })
    assert.deepEqual(failureTexts(deleting.result), {})
  })

  test('a pending pod may rely on one only outside of disruption', () => {
    const pod = aPod({ cpu: '3' })
    const run = (policy: SchedulingInput['policy']) =>
      schedule(anInput({ ...starting, ...coming({ pending: [pod] }), policy }))
    assert.deepEqual(placedOn(run(disruption)), {})
    assert.deepEqual(Object.keys(failureTexts(run(disruption))), [pod.metadata.name])
    assert.deepEqual(placedOn(run(strictPolicy)), { [pod.metadata.name]: 'starting' })
  })
})

describe('pods that stay pending', () => {
  test('SCH-149 beside one that fits nowhere the pods of the candidate find places', () => {
    const stuck = aPod({ cpu: '64' })
    const moving = [aPod({ cpu: '2' }), aPod({ cpu: '1' })]
    const nodes = [aNode('n1')]
    const before = schedule(anInput({ pods: [stuck], nodes }))
    assert.deepEqual(Object.keys(failureTexts(before)), [stuck.metadata.name])
    const after = schedule(
      anInput({ ...coming({ pending: [stuck], candidate: moving }), nodes, policy: disruption }),
    )
    assert.deepEqual(failureTexts(after), failureTexts(before))
    assert.deepEqual(podNames(after.placements.map(({ pod }) => pod)), podNames(moving))
    assert.deepEqual(after.claims, [])
  })
})

describe('destinations under consolidateAfter', () => {
  test('SCH-150 pods of candidates avoid them, others use them, drift asks for no such thing', () => {
    const run = (origin: PodOrigin, node: Partial<NodeInput>) => {
      const pod = aPod({ cpu: '1' })
      const result = schedule(
        anInput({ ...coming({ [origin]: [pod] }), nodes: [aNode('busy', node)], policy: disruption }),
      )
      assert.deepEqual(result.failures, [])
      return [result.placements.map(({ node: name }) => name), result.claims.length]
    }
    const consolidating = { refusesCandidatePods: true }
    assert.deepEqual(run('candidate', consolidating), [[], 1])
    assert.deepEqual(run('pending', consolidating), [['busy'], 0])
    assert.deepEqual(run('deleting', consolidating), [['busy'], 0])
    const drifting = {}
    assert.deepEqual(run('candidate', drifting), [['busy'], 0])
  })
})

describe('pods of deleting nodes', () => {
  test('SCH-152 three of them and two pending ones that fit together share one new claim', () => {
    const leaving = [aPod({ cpu: '1' }), aPod({ cpu: '1' }), aPod({ cpu: '1' })]
    const waiting = [aPod({ cpu: '1' }), aPod({ cpu: '1' })]
    const old = aNode('old')
    const { nodes, ...cluster } = aCluster(
      [old],
      leaving.map((pod) => boundTo('old', pod)),
    )
    const onItsWay = [...nodes].map(([name, node]) => [name, { ...node, isCandidate: false }] as const)
    const { claims, placements, failures } = schedule(
      anInput({
        ...coming({ deleting: leaving.map((pod) => boundTo('old', pod)), pending: waiting }),
        topology: { ...cluster, nodes: new Map(onItsWay) },
      }),
    )
    assert.deepEqual([placements, failures], [[], []])
    assert.deepEqual(
      claims.map((claim) => podNames(claim.pods)),
      [podNames([...leaving, ...waiting])],
    )
  })
})
