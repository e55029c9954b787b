/** Nodes on which room is kept stay, and go when it is given up (buffers-and-dra.md 2.8). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, labels } from '@tenon/api'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { deploymentKind } from '../world.ts'
import * as b from './buffer-stage.test-support.ts'

const fits = 'True/FitsExistingCapacity'
const types = (stage: Stage): readonly (string | undefined)[] =>
  stage.world.nodes().map(({ metadata }) => metadata.labels?.[labels.instanceType])
const kept = /^Room is kept on it for \d+ pod\(s\) of CapacityBuffer default\/web$/

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

  test('BUF-29 DIS-166 DIS-167 a node with pods and room gives way to a cheaper one that holds both', async (t) => {
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
    b.templated(stage, 'one', 2, b.podSpec('1', only))
    await stage.pass(60 * seconds)
    b.templated(stage, 'two', 3, b.podSpec('1', only))
    await stage.pass(60 * seconds)
    assert.equal(stage.world.nodes().length, 2)
    b.changeBuffer(stage, 'two', { replicas: 1 })
    await stage.pass(30 * minutes)
    const rooms = stage.operator.operator.state.buffers.kept().size
    assert.equal(stage.world.nodes().length, rooms, 'a node stays for each room')
    assert.equal(stage.world.claims().length, rooms)
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
