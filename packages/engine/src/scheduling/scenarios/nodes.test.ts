/** Existing and starting nodes, and what changes when a disruption is simulated (scheduling.md 6.5, 14). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import type { NodeInput, PodOrigin, SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import {
  aNode,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  placedOn,
  podNames,
  requirementsOn,
  strictPolicy,
  times,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

/** A claim that was launched and has no node yet, as the engine sees it. */
function aLaunchedClaim(name: string, overrides: Partial<NodeInput> = {}): NodeInput {
  const tags = {
    [labels.nodePool]: 'default',
    [labels.instanceType]: 'type-4',
    [labels.zone]: 'zone-1',
    [labels.os]: 'linux',
  }
  return aNode(name, { labels: tags, initialized: false, ...overrides })
}

describe('nodes that are there or on their way', () => {
  test('SCH-73 room on a launched claim is used in place of a second claim', () => {
    const pods = times(2, () => aPod({ cpu: '2' }))
    const result = schedule(anInput({ pods, nodes: [aLaunchedClaim('default-x7k2p')] }))
    assert.deepEqual([result.claims, result.failures], [[], []])
    assert.deepEqual(new Set(Object.values(placedOn(result))), new Set(['default-x7k2p']))
    assert.equal(result.placements.length, 2)
  })

  test('SCH-74 the one initialized node with room goes before all that are starting', () => {
    const starting = times(20, (index) => aLaunchedClaim(`a-${String(index).padStart(2, '0')}`))
    const nodes = [...starting.slice(0, 10), aNode('z'), ...starting.slice(10)]
    const pod = aPod({ cpu: '1' })
    const result = schedule(anInput({ pods: [pod], nodes }))
    assert.deepEqual(placedOn(result), { [pod.metadata.name]: 'z' })
    assert.deepEqual(result.claims, [])
  })

  test('SCH-75 an unmanaged node with room is used', () => {
    const pod = aPod()
    const nodes = [aNode('by-hand', { labels: { [labels.os]: 'linux' } })]
    const result = schedule(anInput({ pods: [pod], nodes }))
    assert.deepEqual(placedOn(result), { [pod.metadata.name]: 'by-hand' })
    assert.deepEqual(result.claims, [])
  })

  test('SCH-76 a pod for a zone gets a new claim when the node has no zone label', () => {
    const pod = aPod({}, { nodeSelector: { [labels.zone]: 'zone-1' } })
    const nodes = [aNode('n1', { labels: { [labels.os]: 'linux' } })]
    const result = schedule(anInput({ pods: [pod], nodes }))
    assert.deepEqual([result.placements, result.failures], [[], []])
    assert.equal(result.claims.length, 1)
    assert.deepEqual(podNames(result.claims[0]?.pods ?? []), [pod.metadata.name])
    assert.deepEqual(requirementsOn(result.claims[0], labels.zone), [
      { key: labels.zone, operator: 'In', values: ['zone-1'] },
    ])
  })

  test('a node without host name label goes by its name', () => {
    const byName = aPod({}, { nodeSelector: { [labels.hostname]: 'n1' } })
    const byLabel = aPod({}, { nodeSelector: { [labels.hostname]: 'host-2' } })
    const nodes = [aNode('n1'), aNode('n2', { labels: { [labels.hostname]: 'host-2' } })]
    assert.deepEqual(placedOn(schedule(anInput({ pods: [byName, byLabel], nodes }))), {
      [byName.metadata.name]: 'n1',
      [byLabel.metadata.name]: 'n2',
    })
  })

  test('errors of nodes and open claims are not reported, only those of the pools', () => {
    const pod = aPod({ cpu: '64' })
    const result = schedule(anInput({ pods: [aPod(), pod], nodes: [aNode('n1')] }))
    const text = failureTexts(result)[pod.metadata.name] ?? ''
    assert.match(text, /^NodePool default: /)
    assert.ok(!text.includes('n1'))
  })
})

/** A simulated disruption in which each pod comes from `origin`, or is pending. */
function simulated(
  pods: readonly Pod[],
  origin: PodOrigin | undefined,
  rest: Partial<SchedulingInput>,
): SchedulingResult {
  return schedule(
    anInput({
      pods,
      policy: { ...strictPolicy, simulation: 'disruption' },
      origins: new Map(origin === undefined ? [] : pods.map((pod) => [pod.metadata.uid ?? '', origin])),
      ...rest,
    }),
  )
}

/** What became of one pod: the node it went to, a claim, or why neither. */
function fateOf(pod: Pod, result: SchedulingResult): string {
  const { name } = pod.metadata
  if (result.claims.some((claim) => claim.pods.some((held) => held.metadata.uid === pod.metadata.uid)))
    return 'a new claim'
  return placedOn(result)[name] ?? failureTexts(result)[name] ?? 'nothing'
}

describe('simulated disruptions', () => {
  const tooSmall = [aPoolInput(aPool(), [aType('type-1', 1, 4)])]

  test('SCH-148 a candidate’s pod must not rely on a node that is starting, a deleting node’s pod may', () => {
    const pod = aPod({ cpu: '3' })
    const rest = { nodes: [aLaunchedClaim('starting')], pools: tooSmall }
    const candidate = simulated([pod], 'candidate', rest)
    assert.deepEqual([candidate.placements, candidate.claims], [[], []])
    assert.match(fateOf(pod, candidate), /initialized/)
    const deleting = simulated([pod], 'deleting', rest)
    assert.equal(fateOf(pod, deleting), 'starting')
    assert.deepEqual(deleting.failures, [])
  })

  test('a pending pod must not rely on a node that is starting either', () => {
    const pod = aPod({ cpu: '3' })
    const rest = { nodes: [aLaunchedClaim('starting')], pools: tooSmall }
    for (const origin of ['pending', undefined] as const) {
      const result = simulated([pod], origin, rest)
      assert.deepEqual(result.placements, [])
      assert.match(fateOf(pod, result), /initialized/)
    }
  })

  test('a pod that would go to a starting node fails even if a new claim could hold it', () => {
    const pod = aPod({ cpu: '3' })
    const result = simulated([pod], 'candidate', { nodes: [aLaunchedClaim('starting')] })
    assert.deepEqual([result.placements, result.claims], [[], []])
    assert.match(fateOf(pod, result), /initialized/)
    const other = simulated([pod], 'candidate', { nodes: [aLaunchedClaim('starting'), aNode('z')] })
    assert.equal(fateOf(pod, other), 'z')
  })

  test('when provisioning, the same node serves pods of any origin', () => {
    for (const origin of ['pending', 'deleting', 'candidate'] as const) {
      const pod = aPod({ cpu: '3' })
      const nodes = [aLaunchedClaim('starting')]
      for (const policy of [strictPolicy, { ...strictPolicy, simulation: 'provisioning' as const }])
        assert.equal(fateOf(pod, simulated([pod], origin, { nodes, policy })), 'starting')
    }
  })

  test('SCH-149 a pending pod that fits nowhere before and after fails alone, the others have places', () => {
    const stuck = aPod({ cpu: '64' })
    const moved = aPod({ cpu: '1' })
    const nodes = [aNode('n1')]
    const before = schedule(anInput({ pods: [stuck], nodes }))
    assert.deepEqual(podNames(before.failures.map(({ pod }) => pod)), [stuck.metadata.name])
    const after = simulated([stuck, moved], undefined, {
      nodes,
      origins: new Map([[moved.metadata.uid ?? '', 'candidate']]),
    })
    assert.deepEqual(podNames(after.failures.map(({ pod }) => pod)), [stuck.metadata.name])
    assert.equal(fateOf(moved, after), 'n1')
    assert.deepEqual(after.claims, [])
  })

  test('SCH-150 pods of candidates avoid a node under consolidateAfter, others use it, so do all in a drift', () => {
    const nodes = [aNode('settling', { refusesCandidatePods: true })]
    const fates = (['candidate', 'pending', 'deleting'] as const).map((origin) => {
      const pod = aPod({ cpu: '1' })
      return [origin, fateOf(pod, simulated([pod], origin, { nodes }))]
    })
    assert.deepEqual(fates, [
      ['candidate', 'a new claim'],
      ['pending', 'settling'],
      ['deleting', 'settling'],
    ])
    // For drift the node is not marked.
    const pod = aPod({ cpu: '1' })
    assert.equal(fateOf(pod, simulated([pod], 'candidate', { nodes: [aNode('settling')] })), 'settling')
  })

  test('pods of one spec but of different origins are told apart at a settling node', () => {
    const pods = times(3, () => aPod({ cpu: '1' }))
    const [first, second, third] = pods.map((pod) => pod.metadata.uid ?? '')
    const result = simulated(pods, undefined, {
      nodes: [aNode('settling', { refusesCandidatePods: true })],
      origins: new Map([
        [first ?? '', 'candidate'],
        [second ?? '', 'deleting'],
        [third ?? '', 'pending'],
      ]),
    })
    assert.deepEqual(
      pods.map((pod) => fateOf(pod, result)),
      ['a new claim', 'settling', 'settling'],
    )
  })
})
