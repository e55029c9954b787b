/** Nodes on which room is kept stay, and go when it is given up (buffers-and-dra.md 2.8). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, kinds, labels } from '@tenon/api'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { aKwokPool, deploymentKind } from '../world.ts'
import * as b from './buffer-stage.test-support.ts'

const fits = 'True/FitsExistingCapacity'
const types = (stage: Stage): readonly (string | undefined)[] =>
  stage.world.nodes().map(({ metadata }) => metadata.labels?.[labels.instanceType])
const kept = /^Room is kept on it for \d+ pods? of CapacityBuffer default\/web$/

describe('nodes of CapacityBuffers', () => {
  test('BUF-16 BUF-27 BUF-28 BUF-31 BUF-117 DIS-64 they stay while room is kept there, with an event', async (t) => {
    const stage = await b.openBuffers(t)
    const apart = { topologyKey: labels.hostname, labelSelector: { matchLabels: { app: 'web' } } }
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } }
    b.templated(stage, 'web', 3, b.podSpec('1', { affinity }))
    b.deployment(stage, 'other', 1, b.podSpec('4', { nodeSelector: { [labels.instanceType]: b.large } }))
    await stage.pass(10 * minutes)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), fits)
    assert.equal(types(stage).filter((type) => type === b.small).length >= 2, true)
    assert.ok(stage.events('Unconsolidatable').some(({ message }) => kept.test(message)))
    const count = stage.world.nodes().length

    b.changeBuffer(stage, 'web', { replicas: 1 })
    await stage.pass(5 * minutes)
    assert.equal(b.bufferNow(stage, 'web')?.status?.replicas, 1)
    assert.ok(stage.world.nodes().length < count, 'what is too many goes')

    b.deleteBuffer(stage, 'web')
    await stage.pass(2 * seconds)
    assert.deepEqual(stage.operator.operator.state.buffers.all(), [])
    await stage.pass(2 * minutes)
    assert.deepEqual(types(stage), [b.large], 'though nothing else has happened; others are not affected')
  })

  test('BUF-36 buffers that come and go quickly leave no node behind', async (t) => {
    const stage = await b.openBuffers(t)
    b.podTemplate(stage, 'web')
    for (let n = 0; n < 12; n++) {
      b.buffer(stage, 'web', { podTemplateRef: { name: 'web' }, replicas: 3 + n })
      await stage.pass(350 * (n + 1))
      b.deleteBuffer(stage, 'web')
      await stage.pass(150 * n)
    }
    await stage.pass(5 * minutes)
    assert.deepEqual(stage.world.nodes(), [])
    assert.deepEqual(stage.world.claims(), [])
    assert.equal(stage.operator.operator.state.buffers.kept().size, 0)
  })

  test('after a restart nothing goes before a pass has found the room again', async (t) => {
    const stage = await b.openBuffers(t)
    b.templated(stage, 'web', 3)
    b.deployment(stage, 'app', 4)
    b.buffer(stage, 'app', { scalableRef: { kind: 'Deployment', name: 'app' }, percentage: 50 })
    await stage.pass(10 * minutes)
    const before = stage.world.nodes().map(({ metadata }) => metadata.uid)
    for (let n = 0; n < 3; n++) {
      await stage.restart()
      await stage.pass(3 * minutes)
    }
    assert.deepEqual(
      stage.world.nodes().map(({ metadata }) => metadata.uid),
      before,
    )
  })

  test('BUF-29 DIS-167 a node with pods and room gives way to a cheaper one that holds both', async (t) => {
    const stage = await b.openBuffers(t)
    b.deployment(stage, 'big', 1, b.podSpec('5'))
    b.deployment(stage, 'web', 1)
    await stage.pass(60 * seconds)
    assert.deepEqual(types(stage), [b.large])
    b.templated(stage, 'room', 1)
    await stage.pass(60 * seconds)
    assert.equal(b.stateOf(stage, 'room', 'Provisioning'), fits)
    stage.world.cluster.server.local.delete(deploymentKind, 'default', 'big')
    await stage.pass(10 * minutes)
    assert.deepEqual(types(stage), [b.small])
    assert.equal(b.bound(stage, 'web'), 1)
    assert.equal(b.stateOf(stage, 'room', 'Provisioning'), fits)
  })

  test('BUF-118 two nodes of room alone are left as they are; pods on one of them make it a candidate', async (t) => {
    const stage = await b.openBuffers(t)
    const only = { nodeSelector: { [labels.instanceType]: b.small } }
    const buffers = ['one', 'two'] as const
    for (const name of buffers) {
      b.templated(stage, name, 1, b.podSpec('3', only))
      await stage.pass(60 * seconds)
    }
    const uids = () => stage.world.nodes().map(({ metadata }) => metadata.uid)
    const before = uids()
    assert.deepEqual(types(stage), [b.small, b.small])
    for (const name of buffers) {
      const template = { metadata: { labels: { app: name } }, spec: b.podSpec('1', only) }
      stage.patch(kinds.podTemplate, name, { template }, undefined, 'default')
    }
    await stage.pass(30 * minutes)
    const { buffers: rooms } = stage.operator.operator.state
    assert.equal(rooms.all()[0]?.spec.containers[0]?.resources?.requests?.['cpu'], '1')
    assert.deepEqual(uids(), before, 'though either has room for both')
    assert.equal(rooms.kept().size, 2)

    b.deployment(stage, 'web', 1)
    await stage.pass(20 * minutes)
    assert.equal(stage.world.nodes().length, 1)
    assert.ok(before.includes(uids()[0]), 'nothing was launched for it')
    assert.equal(b.bound(stage, 'web'), 1)
    for (const name of buffers) assert.equal(b.stateOf(stage, name, 'Provisioning'), fits)
  })

  test('DIS-166 room keeps its place on a node that has lately received pods, so that others may go', async (t) => {
    const stage = await b.openBuffers(t)
    const of = (pool: string) => ({ nodeSelector: { [labels.nodePool]: pool } })
    const disruption = { consolidateAfter: '2h', budgets: [{ nodes: '100%' }] }
    stage.world.create(karpenterKinds.nodePool, aKwokPool('busy', { disruption }))
    b.deployment(stage, 'big', 1, b.podSpec('5', of('default')))
    await stage.pass(20 * seconds)
    b.deployment(stage, 'filler', 1, b.podSpec('2', of('default')))
    await stage.pass(20 * seconds)
    b.deployment(stage, 'web', 1, b.podSpec('1', of('default')))
    b.templated(stage, 'room', 2, b.podSpec('1', of('busy')))
    await stage.pass(60 * seconds)
    b.deployment(stage, 'newcomer', 1, b.podSpec('1', of('busy')))
    await stage.pass(20 * seconds)
    const poolOf = (pool: string) =>
      stage.world.nodes().filter(({ metadata }) => metadata.labels?.[labels.nodePool] === pool)
    const uidsOf = (pool: string) => poolOf(pool).map(({ metadata }) => metadata.uid)
    const host = uidsOf('busy')
    assert.equal(host.length, 1)
    assert.equal(poolOf('default').length, 2)
    const { buffers } = stage.operator.operator.state
    const rooms = [...buffers.kept().keys()]
    assert.deepEqual(
      rooms,
      poolOf('busy').map(({ spec }) => spec?.providerID),
    )

    stage.world.cluster.server.local.delete(deploymentKind, 'default', 'filler')
    const claims = stage.world.claims().length
    await stage.pass(20 * minutes)
    assert.equal(poolOf('default').length, 1, 'its pod has moved to the other one')
    assert.equal(b.bound(stage, 'web'), 1)
    assert.equal(stage.world.claims().length, claims - 1, 'and nothing was launched')
    assert.deepEqual(uidsOf('busy'), host)
    assert.deepEqual([...buffers.kept().keys()], rooms)
    assert.equal(b.stateOf(stage, 'room', 'Provisioning'), fits)
  })

  test('BUF-30 a node with room that drifts is replaced, and the room refilled', async (t) => {
    const stage = await b.openBuffers(t)
    b.templated(stage, 'web', 3)
    await stage.pass(60 * seconds)
    const [before] = stage.world.nodes()
    const template = stage.poolNow()?.spec.template
    stage.patch(
      { group: 'karpenter.sh', version: 'v1', kind: 'NodePool', plural: 'nodepools', namespaced: false },
      'default',
      {
        spec: { template: { ...template, metadata: { labels: { release: '2' } } } },
      },
    )
    await stage.pass(10 * minutes)
    const [after] = stage.world.nodes()
    assert.equal(stage.world.nodes().length, 1)
    assert.notEqual(after?.metadata.uid, before?.metadata.uid)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), fits)
    assert.equal(stage.world.cluster.server.local.list(kinds.pod).length, 0)
  })
})
