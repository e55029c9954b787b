import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import {
  anExpression,
  anAppPod,
  aPod,
  aPool,
  aPoolInput,
  aType,
  preferring,
  preferringPods,
  requiringPods,
  spreading,
  times,
  valuesOn,
} from '../testing/builders.test-support.ts'
import { consolidate, type Instance, moves, refusals } from './consolidation.test-support.ts'

const small = aType('small', 2, 8)
const medium = aType('medium', 4, 16)
const large = aType('large', 8, 32)
const noRoom = { available: { cpu: 0, memory: 0, pods: 0 } }

/** A small node, for which there is no cheaper one. */
const cheapest = (...pods: readonly Pod[]): Instance => ({ type: small, pods })

test('DIS-102 pods may move to nodes that nobody manages', () => {
  const unmanaged: Instance = { type: large, stays: true, node: { labels: { [labels.hostname]: 'theirs' } } }
  const result = consolidate('single', { instances: { here: cheapest(aPod()), theirs: unmanaged } })
  assert.deepEqual(moves(result), [[['here']]])
  assert.deepEqual(
    result.moves[0]?.placements.map(({ node }) => node),
    ['theirs'],
  )
})

test('DIS-103 a node stays whose pods would need a node that is still starting', () => {
  const pods = [aPod(), aPod()]
  const instances = {
    here: cheapest(...pods),
    starting: { type: large, stays: true, node: { initialized: false } },
  }
  const result = consolidate('single', { instances })
  assert.deepEqual(moves(result), [])
  const [finding] = result.findings
  assert.ok(finding?.kind === 'refused' && finding.refusal.kind === 'stranded')
  assert.deepEqual(
    finding.refusal.pods.map(({ pod, reason }) => [pod.metadata.uid, reason]),
    pods.map(({ metadata }) => [metadata.uid, { kind: 'uninitializedNode', node: 'starting' }]),
  )
})

test('DIS-104 among many nodes that are starting, the one that is ready takes the pods', () => {
  const starting: Instance = { type: large, stays: true, node: { initialized: false } }
  const result = consolidate('single', {
    instances: {
      ...Object.fromEntries(times(20, (index) => [`a-${index}`, starting])),
      here: cheapest(aPod()),
      ready: { type: small, stays: true },
    },
  })
  assert.deepEqual(moves(result), [[['here']]])
  assert.deepEqual(
    result.moves[0]?.placements.map(({ node }) => node),
    ['ready'],
  )
})

test('DIS-105 a pod that waits for ever does not keep nodes', () => {
  const result = consolidate('single', {
    instances: { here: cheapest(aPod()), there: { type: small, stays: true } },
    pending: [aPod({ cpu: '150' })],
  })
  assert.deepEqual(moves(result), [[['here']]])
})

test('DIS-106 a node stays if one of its pods would find no other place', () => {
  const rare = anAppPod('rare', { nodeSelector: { [labels.hostname]: 'here' } })
  const instances = { here: cheapest(rare, aPod()), there: { type: small, stays: true } }
  for (const search of ['single', 'multi'] as const)
    assert.deepEqual(moves(consolidate(search, { instances })), [])
  assert.deepEqual(refusals(consolidate('single', { instances })), { here: 'stranded' })
})

test('DIS-108 a node stays that a large waiting pod will need', () => {
  const instances = { here: { type: large, pods: [aPod({ cpu: '500m' })] } }
  const types = [small, medium, large]
  assert.equal(consolidate('single', { instances, types }).moves.length, 1)
  const result = consolidate('single', { instances, types, pending: [aPod({ cpu: '7' })] })
  assert.deepEqual(moves(result), [])
})

test('DIS-109 pods that keep apart keep their nodes', () => {
  const apart = () => anAppPod('web', requiringPods('podAntiAffinity', labels.hostname, 'web'))
  const result = consolidate('multi', { instances: { a: cheapest(apart()), b: cheapest(apart()) } })
  assert.deepEqual(moves(result), [])
  const single = consolidate('single', { instances: { a: cheapest(apart()), b: cheapest(apart()) } })
  assert.deepEqual(moves(single), [])
})

test('DIS-109 a node that spreads pods over zones is replaced in its own zone', () => {
  const zones = ['zone-1', 'zone-2']
  const types = [aType('small', 2, 8, zones), aType('large', 8, 32, zones)]
  const spread = () => anAppPod('web', spreading(labels.zone, 'web'))
  const instance = (zone: string, isFull: boolean): Instance => ({
    type: types[1]!,
    zone,
    pods: [spread()],
    ...(isFull && { node: noRoom, stays: true }),
  })
  const result = consolidate('single', {
    types,
    instances: { a: instance('zone-1', true), b: instance('zone-2', false) },
  })
  assert.deepEqual(moves(result), [[['b'], ['small']]])
  assert.deepEqual(valuesOn(result.moves[0]?.claims[0], labels.zone), ['zone-2'])
})

test('DIS-110 wishes of pods keep no node when preferences are ignored', () => {
  const apart = () => anAppPod('web', preferringPods('podAntiAffinity', labels.hostname, 'web'))
  const instances = { a: cheapest(apart()), b: cheapest(apart()) }
  assert.deepEqual(moves(consolidate('single', { instances })), [])
  const ignoring = { policy: { preferences: 'Ignore' } } as const
  assert.deepEqual(moves(consolidate('single', { instances, ...ignoring })), [[['a']]])
  const fond = aPod({ cpu: '1' }, preferring([1, anExpression(labels.instanceType, 'In', 'large')]))
  const story = { instances: { here: { type: large, pods: [fond] } }, types: [small, large] }
  assert.deepEqual(moves(consolidate('single', story)), [])
  assert.deepEqual(moves(consolidate('single', { ...story, ...ignoring })), [[['here'], ['small']]])
})

test('DIS-123 a node stays that pods of a node on its way out will need', () => {
  const instances = { here: { type: medium, pods: [aPod({ cpu: '100m' })] } }
  const types = [small, medium]
  const result = consolidate('single', { instances, types, leaving: [aPod({ cpu: '3' })] })
  assert.deepEqual(moves(result), [])
  assert.deepEqual(moves(consolidate('single', { instances, types })), [[['here'], ['small']]])
})

test('pods of a node on its way out that find no place keep every node', () => {
  const result = consolidate('single', {
    instances: { here: cheapest(aPod()), there: { type: small, stays: true } },
    leaving: [aPod({ cpu: '150' })],
  })
  assert.deepEqual(refusals(result), { here: 'stranded' })
})

test('a node under consolidateAfter takes pods that are still starting, and those of a replaced node go elsewhere', () => {
  const busy: Instance = { type: small, stays: true, node: { refusesCandidatePods: true } }
  const result = consolidate('single', { instances: { here: cheapest(aPod()), busy } })
  assert.deepEqual(moves(result), [])
  const starting = { ...aPod(), status: { phase: 'Pending' as const } }
  assert.deepEqual(moves(consolidate('single', { instances: { here: cheapest(starting), busy } })), [
    [['here']],
  ])
  const replaced = { here: { type: large, pods: [aPod()] }, busy }
  assert.deepEqual(moves(consolidate('single', { instances: replaced, types: [small, large] })), [
    [['here'], ['small']],
  ])
})

test('DIS-107 nodes of other pools are consolidated when one sells nothing', () => {
  const pools = [aPoolInput(aPool('empty'), []), aPoolInput(aPool('default'), [small, large])]
  const result = consolidate('single', { pools, instances: { here: { type: large, pods: [aPod()] } } })
  assert.deepEqual(moves(result), [[['here'], ['small']]])
})

test('DIS-164 a pod with a resource claim keeps its node, and is named', () => {
  const pod = aPod({}, { resourceClaims: [{ name: 'gpu' }] })
  const result = consolidate('single', {
    instances: { here: cheapest(pod), there: { type: small, stays: true } },
  })
  assert.deepEqual(moves(result), [])
  const [finding] = result.findings
  assert.ok(finding?.kind === 'refused' && finding.refusal.kind === 'stranded')
  assert.deepEqual(
    finding.refusal.pods.map(({ pod: { metadata }, reason }) => [metadata.name, reason.kind]),
    [[pod.metadata.name, 'resourceClaims']],
  )
})
