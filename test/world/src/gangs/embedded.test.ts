/** Gangs on the embedded cluster, whose scheduler plays the groups of Kubernetes (gangs.md 5.3, 5.4, 7). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, labels } from '@tenon/api'
import { aType } from '../testing/pools.test-support.ts'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { isClosed, liveClaims } from './gang-stage.test-support.ts'
import {
  boundOf,
  openPlayed,
  ordinaryPod,
  play,
  playedGroup,
  playedPods,
  zonesOf,
} from './played-stage.test-support.ts'

const zones = ['zone-1', 'zone-2']

describe('gangs whose conditions the scheduler writes', () => {
  test('GNG-1 two of four are not even tried; with the other two all run from one decision', async (t) => {
    const { stage } = await openPlayed(t)
    playedGroup(stage, 'train', { minCount: 4 })
    playedPods(stage, 'train', 2)
    await play(stage, 1 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    playedPods(stage, 'train', 2, { from: 2 })
    await play(stage, 1 * minutes)
    assert.equal(boundOf(stage, 'train'), 4)
    assert.equal(liveClaims(stage).length, 4)
  })

  test('GNG-2 without the group there is no claim; once it is made all run', async (t) => {
    const { stage } = await openPlayed(t)
    playedPods(stage, 'train', 3)
    await play(stage, 30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
    playedGroup(stage, 'train', { minCount: 3 })
    await play(stage, 1 * minutes)
    assert.equal(boundOf(stage, 'train'), 3)
  })

  test('GNG-3 with room for half of it, nodes for the other half are launched, and all are bound', async (t) => {
    const { stage } = await openPlayed(t)
    ordinaryPod(stage, 'first', { cpu: '3' })
    await play(stage, 1 * minutes)
    stage.world.cluster.server.local.delete(kinds.pod, 'default', 'first', { gracePeriodSeconds: 0 })
    playedGroup(stage, 'train', { minCount: 4 })
    playedPods(stage, 'train', 4, { cpu: '2' })
    await play(stage, 1 * minutes)
    assert.equal(boundOf(stage, 'train'), 4)
    assert.equal(liveClaims(stage).length, 2)
  })

  test('GNG-4 while two are gated nothing is launched for the others; without gates all run', async (t) => {
    const { stage } = await openPlayed(t)
    const schedulingGates = [{ name: 'example.com/gate' }]
    playedGroup(stage, 'train', { minCount: 4 })
    playedPods(stage, 'train', 2)
    playedPods(stage, 'train', 2, { from: 2, spec: { schedulingGates } })
    await play(stage, 1 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    for (const name of ['train-2', 'train-3'])
      stage.patch(kinds.pod, name, { spec: { schedulingGates: null } }, undefined, 'default')
    await play(stage, 1 * minutes)
    assert.equal(boundOf(stage, 'train'), 4)
  })

  test('GNG-5 with limits for three, three of five run and two wait for the limit', async (t) => {
    const { stage } = await openPlayed(t, { pool: { limits: { nodes: '3' } } })
    playedGroup(stage, 'train', { minCount: 2 })
    playedPods(stage, 'train', 5)
    await play(stage, 2 * minutes)
    assert.equal(boundOf(stage, 'train'), 3)
    const waiting = stage.world.pods().filter(({ spec }) => (spec.nodeName ?? '') === '')
    assert.equal(waiting.length, 2)
    for (const { metadata } of waiting) {
      const told = stage.events('FailedScheduling').filter(({ object }) => object === `Pod/${metadata.name}`)
      assert.match(told.map(({ message }) => message).join('\n'), /limit on the number/, metadata.name)
    }
  })

  test('GNG-16 of nodes that are Ready at different times none opens before the last, and then all do', async (t) => {
    const { stage } = await openPlayed(t)
    playedGroup(stage, 'train', { minCount: 4 })
    playedPods(stage, 'train', 4)
    const openAt = new Map<string, number>()
    for (const end = stage.now + 3 * minutes; stage.now < end; ) {
      await play(stage, 1 * seconds, { apartMs: 20_000 })
      for (const { metadata } of liveClaims(stage)) {
        const { name } = metadata
        if (stage.nodeNow(`node-${name}`) === undefined || isClosed(stage, name)) continue
        if (!openAt.has(name)) openAt.set(name, stage.now)
      }
    }
    assert.equal(openAt.size, 4)
    const times = [...openAt.values()]
    assert.ok(Math.max(...times) - Math.min(...times) <= 1 * seconds, times.join(' '))
    assert.equal(boundOf(stage, 'train'), 4)
  })

  test('GNG-18 no nomination is written on a member', async (t) => {
    const { stage } = await openPlayed(t)
    playedGroup(stage, 'train', { minCount: 4 })
    playedPods(stage, 'train', 4)
    for (let at = 0; at < 60; at++) {
      await play(stage, 1 * seconds)
      for (const pod of stage.world.pods())
        assert.equal(pod.status?.nominatedNodeName ?? '', '', pod.metadata.name)
    }
    assert.equal(boundOf(stage, 'train'), 4)
  })

  test('GNG-19 a gang of two large and eight small pods runs from one round of nodes', async (t) => {
    const types = [aType('type-4', 4), aType('type-16', 16)]
    for (let seed = 1; seed <= 20; seed++) {
      const { stage } = await openPlayed(t, { types, world: { seed } })
      playedGroup(stage, 'mixed', { minCount: 10 })
      playedPods(stage, 'mixed-small', 8, { cpu: '1' }, 'mixed')
      playedPods(stage, 'mixed-large', 2, { cpu: '8' }, 'mixed')
      await play(stage, 40 * seconds)
      const first = liveClaims(stage).map(({ metadata }) => metadata.name)
      await play(stage, 60 * seconds)
      assert.equal(boundOf(stage, 'mixed'), 10, `seed ${seed}`)
      const names = liveClaims(stage).map(({ metadata }) => metadata.name)
      assert.deepEqual(names.toSorted(), first.toSorted(), `seed ${seed}`)
    }
  })
})

describe('without the feature gate of Kubernetes', () => {
  test('GNG-35 pods belong to no group, and are decided about one by one', async (t) => {
    const { stage } = await openPlayed(t, {
      pool: { limits: { nodes: '2' } },
      world: { cluster: { featureGates: { genericWorkload: false } } },
    })
    playedPods(stage, 'train', 4)
    await play(stage, 40 * seconds)
    assert.equal(boundOf(stage, 'train'), 2)
  })
})

describe('gangs in one domain', () => {
  test('GNG-26 with four places in one zone and eight in another, all eight run in the other', async (t) => {
    const { stage, cloud } = await openPlayed(t, { types: [aType('type-4', 4, zones)] })
    cloud.stock.set('type-4/zone-1', 4)
    playedGroup(stage, 'train', { minCount: 8, topologyKey: labels.zone })
    playedPods(stage, 'train', 8)
    await play(stage, 6 * minutes)
    assert.equal(boundOf(stage, 'train'), 8)
    assert.deepEqual(zonesOf(stage, 'train'), ['zone-2'])
  })

  test('GNG-27 a label that only NodePools give is on the nodes before they open', async (t) => {
    const { stage } = await openPlayed(t, {
      pool: { template: rackTemplate() },
    })
    playedGroup(stage, 'train', { minCount: 3, topologyKey: 'example.com/rack' })
    playedPods(stage, 'train', 3)
    await play(stage, 1 * minutes)
    assert.equal(boundOf(stage, 'train'), 3)
    for (const { metadata } of stage.world.nodes()) assert.equal(metadata.labels?.['example.com/rack'], 'r1')
  })

  test('GNG-28 for a key that nothing sets there is no launch, and that is told', async (t) => {
    const { stage } = await openPlayed(t)
    playedGroup(stage, 'train', { minCount: 3, topologyKey: 'example.com/rack' })
    playedPods(stage, 'train', 3)
    await play(stage, 1 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    assert.match(stage.events('GroupNotPlaceable')[0]?.message ?? '', /example\.com\/rack/)
  })

  test('GNG-29 where four are bound the others go, too, although another zone is cheaper', async (t) => {
    const priced = aType('type-4', 4, zones)
    const [first, second] = priced.offerings
    if (first === undefined || second === undefined) throw new Error('two offerings')
    const { stage, cloud } = await openPlayed(t, { types: [priced] })
    playedGroup(stage, 'train', { minCount: 4, topologyKey: labels.zone })
    playedPods(stage, 'train', 4)
    await play(stage, 1 * minutes)
    assert.deepEqual(zonesOf(stage, 'train'), ['zone-1'])
    cloud.instanceTypes = [{ ...priced, offerings: [{ ...first, pricePerHour: 9 }, second] }]
    await play(stage, 10 * minutes)
    playedPods(stage, 'train', 2, { from: 4 })
    await play(stage, 2 * minutes)
    assert.equal(boundOf(stage, 'train'), 6)
    assert.deepEqual(zonesOf(stage, 'train'), ['zone-1'])
  })

  test('GNG-30 a node without its label makes new members an error, for which nothing is launched', async (t) => {
    const { stage } = await openPlayed(t)
    playedGroup(stage, 'train', { minCount: 2, topologyKey: labels.zone })
    playedPods(stage, 'train', 2)
    await play(stage, 1 * minutes)
    assert.equal(boundOf(stage, 'train'), 2)
    await stage.world.bury(stage.operator)
    const [node] = stage.world.nodes()
    stage.patch(kinds.node, node?.metadata.name ?? '', { metadata: { labels: { [labels.zone]: null } } })
    playedPods(stage, 'train', 1, { from: 2 })
    await stage.pass(1 * seconds)
    const condition = stage.podNow('train-2')?.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    assert.equal(condition?.reason, 'SchedulerError')
    await stage.start()
    await play(stage, 20 * seconds)
    assert.equal(liveClaims(stage).length, 2)
  })

  test('GNG-31 when the domain cannot complete it, its claims go within the bound and another one is used', async (t) => {
    const { stage, cloud } = await openPlayed(t, { types: [aType('type-4', 4, zones)] })
    cloud.stock.set('type-4/zone-1', 2)
    playedGroup(stage, 'train', { minCount: 4, topologyKey: labels.zone })
    playedPods(stage, 'train', 4)
    let halfSince: number | undefined
    for (let at = 0; at < 240; at++) {
      await play(stage, 1 * seconds)
      const inFirst = liveClaims(stage).filter(({ metadata }) => metadata.labels?.[labels.zone] === 'zone-1')
      if (cloud.refused.length > 0 && inFirst.length > 0) halfSince ??= stage.now
      else halfSince = undefined
      if (halfSince !== undefined) assert.ok(stage.now - halfSince <= 2 * minutes)
    }
    assert.equal(boundOf(stage, 'train'), 4)
    assert.deepEqual(zonesOf(stage, 'train'), ['zone-2'])
  })
})

/** A template that gives its nodes a label. */
function rackTemplate() {
  return {
    metadata: { labels: { 'example.com/rack': 'r1' } },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      requirements: [],
      expireAfter: 'Never',
    },
  }
}
