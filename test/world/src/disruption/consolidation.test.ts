import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels, type NodePool } from '@tenon/api'
import { defaultSettings, InlineDecider } from '@tenon/operator'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool, madeClaims } from '../testing/pools.test-support.ts'
import {
  left,
  setBudget,
  setDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  anOversizedNode,
  aNodeOf,
  consolidate,
  joinReplacements,
  large,
  openReplacing,
  running,
  small,
  untilBegun,
} from './replacing-stage.test-support.ts'

const { featureGates } = defaultSettings
/** The methods of the reference alone. */
const oneByOne = { settings: { featureGates: { ...featureGates, globalConsolidation: false } } }

const onBoth = (stage: Stage, reason: string, name: string) => [
  eventMessages(stage, reason, `Node/node-${name}`),
  eventMessages(stage, reason, `NodeClaim/${name}`),
]

test('DIS-85 an oversized node gives way to a cheaper one, and goes once that one is initialized', async (t) => {
  const stage = await anOversizedNode(t, oneByOne)
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['a'])
  const [made] = madeClaims(stage)
  const types = made?.spec.requirements.find(({ key }) => key === labels.instanceType)?.values
  assert.deepEqual(types, ['small'])
  await stage.pass(30 * seconds)
  assert.equal(left(stage).includes('a'), true)
  await joinReplacements(stage)
  await stage.pass(3 * seconds)
  assert.deepEqual(left(stage), [made?.metadata.name])
  for (const texts of onBoth(stage, 'ConsolidationCandidate', 'a'))
    assert.deepEqual(texts, ['replace: [node-a] -> [1 replacement] (savings: $0.30)'])
})

test('DIS-98 of two nodes of the cheapest type the one with fewer pods goes, and nothing is launched', async (t) => {
  const stage = await openReplacing(t, oneByOne)
  for (const name of ['a', 'b']) await aNodeOf(stage, name, small)
  for (const pod of ['one', 'two']) await running(stage, pod, 'node-a', '100m')
  await running(stage, 'three', 'node-b', '100m')
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['b'])
  await stage.pass(5 * seconds)
  assert.deepEqual([left(stage), madeClaims(stage)], [['a'], []])
})

test('DIS-103 a node stays whose pod would need a node that is starting; pod and NodeClaim are named', async (t) => {
  const stage = await openReplacing(t, oneByOne)
  await aNodeOf(stage, 'a', small)
  await running(stage, 'p', 'node-a')
  const only = { key: labels.instanceType, operator: 'In' as const, values: ['large'] }
  await stage.claim('starting', { requirements: [only] })
  await stage.join('starting')
  consolidate(stage)
  await stage.pass(20 * seconds)
  assert.deepEqual(tainted(stage), [])
  for (const [text = ''] of onBoth(stage, 'Unconsolidatable', 'a')) {
    assert.match(text, /default\/p => /)
    assert.match(text, /NodeClaim starting/)
  }
})

test('DIS-111 a node with a pod event within its consolidateAfter takes no pods', async (t) => {
  const stage = await openReplacing(t, oneByOne)
  for (const name of ['a', 'b']) {
    await aNodeOf(stage, name, small)
    await running(stage, `on-${name}`, `node-${name}`, '100m')
  }
  await stage.pass(2 * minutes)
  await running(stage, 'busy', 'node-b', '100m')
  setDisruption(stage, { consolidateAfter: '1m' })
  await stage.pass(50 * seconds)
  assert.deepEqual(tainted(stage), [])
  await stage.pass(70 * seconds)
  // That a node is quiet now is no news by itself.
  setBudget(stage, '99%')
  await stage.pass(40 * seconds)
  assert.deepEqual(left(stage), ['b'])
})

test('DIS-111 a node takes pods when its pool never consolidates', async (t) => {
  const stage = await openReplacing(t, oneByOne)
  createPool(stage, aKwokPool('calm', { disruption: { consolidateAfter: 'Never' } }))
  await stage.pass(2 * seconds)
  await aNodeOf(stage, 'a', small)
  await running(stage, 'p', 'node-a', '100m')
  await aNodeOf(stage, 'host', small, {}, { labels: { [labels.nodePool]: 'calm' } })
  setDisruption(stage, { consolidateAfter: '1m' })
  await stage.pass(40 * seconds)
  await running(stage, 'q', 'node-host', '100m')
  assert.deepEqual(await untilBegun(stage, minutes), ['a'])
  assert.deepEqual(madeClaims(stage), [])
})

test('DIS-111 a node is replaced while all others are busy', async (t) => {
  const stage = await anOversizedNode(t, oneByOne)
  await aNodeOf(stage, 'host', small)
  setDisruption(stage, { consolidateAfter: '1m' })
  for (let i = 0; i < 4 && tainted(stage).length === 0; i++) {
    await running(stage, `q-${i}`, 'node-host', '100m')
    await stage.pass(25 * seconds)
  }
  assert.deepEqual(tainted(stage), ['a'])
  assert.equal(madeClaims(stage).length, 1)
})

test('RPT-26 nothing is launched for pods for which a node has room that is about to be quiet', async (t) => {
  const stage = await anOversizedNode(t)
  await aNodeOf(stage, 'host', small)
  setDisruption(stage, { consolidateAfter: '1m' })
  await stage.pass(30 * seconds)
  await running(stage, 'q', 'node-host', '100m')
  await stage.pass(50 * seconds)
  assert.deepEqual(tainted(stage), [])
  for (const [text = ''] of onBoth(stage, 'Unconsolidatable', 'a'))
    assert.match(text, /pods fit on nodes that are still within consolidateAfter/)
  await untilBegun(stage, 6 * minutes)
  await stage.pass(5 * seconds)
  assert.deepEqual([left(stage), madeClaims(stage)], [['host'], []])
})

test('a node does not wait for ever for others to become quiet', async (t) => {
  const stage = await anOversizedNode(t)
  await aNodeOf(stage, 'host', small)
  setDisruption(stage, { consolidateAfter: '1m' })
  let passed = 0
  for (; passed < 40 && tainted(stage).length === 0; passed++) {
    await running(stage, `q-${passed}`, 'node-host', '10m')
    await stage.pass(15 * seconds)
  }
  assert.ok(passed * 15 * seconds > 6 * minutes)
  assert.deepEqual([tainted(stage), madeClaims(stage).length], [['a'], 1])
})

test('DIS-112 nodes with pods of a pool that only removes empty ones are told so, once', async (t) => {
  const stage = await openReplacing(t, { ...oneByOne, disruption: { consolidationPolicy: 'WhenEmpty' } })
  await aNodeOf(stage, 'a', large)
  await running(stage, 'p', 'node-a')
  consolidate(stage)
  await stage.pass(minutes)
  for (const texts of onBoth(stage, 'Unconsolidatable', 'a')) {
    assert.equal(texts.length, 1)
    assert.match(texts[0] ?? '', /empty nodes.*WhenEmpty/)
  }
  assert.deepEqual(tainted(stage), [])
})

const unlabelled = [
  ['typeless', labels.instanceType],
  ['zoneless', labels.zone],
  ['plain', labels.capacityType],
] as const

test('DIS-113 nodes without a known type, a zone or a capacity type are told what is missing', async (t) => {
  const stage = await openReplacing(t, { ...oneByOne, disruption: { consolidateAfter: '1h' } })
  for (const [name, missing] of unlabelled) {
    await aNodeOf(stage, name, large)
    await running(stage, `on-${name}`, `node-${name}`)
    stage.patch(kinds.node, `node-${name}`, { metadata: { labels: { [missing]: null } } })
  }
  await stage.pass(minutes)
  const says = { typeless: /^Instance type not found/, zoneless: /zone/, plain: /capacity-type/ }
  for (const [name] of unlabelled)
    for (const texts of onBoth(stage, 'Unconsolidatable', name)) {
      assert.equal(texts.length, 1)
      assert.match(texts[0] ?? '', says[name])
    }
  assert.deepEqual(tainted(stage), [])
})

test('DIS-107 nodes are consolidated although other pools have no types, or cannot list them', async (t) => {
  const stage = await anOversizedNode(t, oneByOne)
  Object.assign(stage.cloud, {
    getInstanceTypes: async (pool?: NodePool) => {
      if (pool?.metadata.name === 'broken') throw new Error('no answer')
      return await Promise.resolve(pool?.metadata.name === 'bare' ? [] : stage.cloud.instanceTypes)
    },
  })
  for (const name of ['bare', 'broken']) createPool(stage, aKwokPool(name))
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['a'])
})

test('DIS-164 a pod with a resource claim keeps its node from consolidation and drift, and is named', async (t) => {
  const stage = await openReplacing(t, { settings: { ...oneByOne.settings, ignoreDraRequests: true } })
  for (const name of ['a', 'b']) await aNodeOf(stage, name, large)
  const resourceClaims = [{ name: 'gpu', resourceClaimName: 'gpu' }]
  await running(stage, 'p', 'node-a', '100m', { spec: { resourceClaims } })
  await running(stage, 'q', 'node-b', '7500m', { annotations: { [annotations.doNotDisrupt]: 'true' } })
  consolidate(stage)
  await stage.pass(30 * seconds)
  for (const texts of onBoth(stage, 'Unconsolidatable', 'a'))
    assert.match(texts.join(), /default\/p => .*ResourceClaims/)
  setDrifted(stage, 'a')
  await stage.pass(6 * minutes)
  for (const texts of onBoth(stage, 'DisruptionBlocked', 'a'))
    assert.match(texts.join(), /default\/p => .*ResourceClaims/)
  assert.deepEqual([tainted(stage), left(stage)], [[], ['a', 'b']])
})

test('DIS-95 cheaper types that are too few for minValues are told of on Node and NodeClaim', async (t) => {
  const stage = await anOversizedNode(t, oneByOne)
  const wanted = { key: labels.instanceType, operator: 'Exists' as const, minValues: 2 }
  const { template } = aKwokPool().spec
  const requirements = [...template.spec.requirements, wanted]
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { template: { spec: { requirements } } } })
  consolidate(stage)
  await stage.pass(40 * seconds)
  for (const texts of onBoth(stage, 'Unconsolidatable', 'a'))
    assert.match(texts.join(), /minValues.*instance-type has 1/)
  assert.deepEqual(tainted(stage), [])
})

/** Has no time for questions about nodes until it is told otherwise. */
class LateDecider extends InlineDecider {
  isLate = true
  /** NodePools that a search for single nodes was told to begin with, of each. */
  readonly first: (readonly string[])[] = []

  override examine(
    ...[input, question, options]: Parameters<InlineDecider['examine']>
  ): ReturnType<InlineDecider['examine']> {
    if (question.kind === 'consolidate' && question.search === 'single') this.first.push(question.unseenPools)
    return super.examine(input, question, this.isLate ? { ...options, deadlineMs: 0 } : options)
  }
}

test('DIS-117 when the time is up before anything is looked at nothing begins, and it is counted', async (t) => {
  let decider: LateDecider | undefined
  const stage = await openReplacing(t, {
    ...oneByOne,
    decider: (clock) => (decider = new LateDecider(clock)),
  })
  for (const name of ['a', 'b']) {
    await aNodeOf(stage, name, large)
    await running(stage, `on-${name}`, `node-${name}`)
  }
  const timeouts = async (type: string) =>
    await stage.metric('voluntary_disruption_consolidation_timeouts_total', { consolidation_type: type })
  assert.deepEqual([await timeouts('multi'), await timeouts('single')], [0, 0])
  consolidate(stage)
  await stage.pass(13 * seconds)
  assert.deepEqual(tainted(stage), [])
  assert.ok((await timeouts('multi')) >= 1)
  // Multi-node consolidation waits until something changes; single-node consolidation tries again.
  const before = [await timeouts('multi'), await timeouts('single')]
  await stage.pass(20 * seconds)
  assert.deepEqual([await timeouts('multi'), await timeouts('single')], [before[0], (before[1] ?? 0) + 2])
  if (decider !== undefined) decider.isLate = false
  assert.deepEqual(await untilBegun(stage), ['a'])
})

test('DIS-119 NodePools that a search did not reach come first in the next one, until it reaches all', async (t) => {
  let decider: LateDecider | undefined
  const stage = await openReplacing(t, {
    ...oneByOne,
    decider: (clock) => (decider = new LateDecider(clock)),
  })
  assert.ok(decider)
  await aNodeOf(stage, 'a', small)
  await running(stage, 'p', 'node-a')
  consolidate(stage)
  await stage.world.clock.advanceUntil(() => decider?.first.length === 1, 20 * seconds)
  decider.isLate = false
  await stage.pass(11 * seconds)
  setBudget(stage, '99%')
  await stage.pass(11 * seconds)
  assert.deepEqual(decider.first, [[], ['default'], []])
})
