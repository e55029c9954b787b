/** What the simulated platform does with a NodeGroup when all goes well. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { builtInFlavors, nodeGroupKind } from '@tenon/provider-clever-cloud'
import { CleverCloudFixture } from './clever-cloud.test-support.ts'
import { inside } from './control-plane.ts'

test('a group is acknowledged after a second, its node comes after half a minute, and both are ready', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(0.9)
  assert.equal(world.brief('a'), 'no phase')
  await world.seconds(0.1)
  assert.equal(world.brief('a'), 'Creating ReconcileInProgress')
  await world.seconds(26.9)
  assert.deepEqual(world.nodes(), [])
  await world.seconds(0.1)
  assert.deepEqual(world.nodes(), ['a-node0'])
  await world.seconds(16.9)
  assert.equal(world.brief('a'), 'Creating ReconcileInProgress')
  await world.seconds(0.1)
  assert.equal(world.brief('a'), 'Synced Ready')
  const { nodeCount, targetNodeCount } = world.group('a')?.status ?? {}
  assert.deepEqual([nodeCount, targetNodeCount], [1, 1])
})

test('a node has the labels of the platform, those and the taints of its group, no provider ID and no zone', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  const taint = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' } as const
  world.create('a', { flavor: 'M', labels: { team: 'data' }, taints: [taint] })
  await world.seconds(60)
  const { metadata, spec, status } = world.node('a-node0') ?? {}
  assert.deepEqual(metadata?.labels, {
    'beta.kubernetes.io/arch': 'amd64',
    'beta.kubernetes.io/os': 'linux',
    'clever-cloud.com/cluster-node-role': 'worker',
    'clever-cloud.com/flavor': 'M',
    'clever-cloud.com/nodegroup': 'a',
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/hostname': 'a-node0',
    'kubernetes.io/os': 'linux',
    team: 'data',
  })
  assert.equal(spec?.providerID, undefined)
  assert.deepEqual(spec?.taints, [taint])
  assert.deepEqual(status?.capacity, {
    cpu: '10',
    'ephemeral-storage': '40971488Ki',
    memory: '15229256Ki',
    pods: '110',
  })
  assert.deepEqual(status?.allocatable, {
    cpu: '10',
    'ephemeral-storage': '37759323279',
    memory: `${15_229_256 - 102_400}Ki`,
    pods: '110',
  })
})

test('a share of the memory is all that guests see', async (t) => {
  const world = await CleverCloudFixture.start({ settings: { guestMemoryPercent: 90 } })
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  const { capacity, allocatable } = world.node('a-node0')?.status ?? {}
  assert.deepEqual(
    [capacity?.['memory'], allocatable?.['memory']],
    [`${Math.floor(3_715_344 * 0.9)}Ki`, `${Math.floor(3_715_344 * 0.9) - 102_400}Ki`],
  )
})

test('the drawn times of the platform are those of the sheet', async (t) => {
  const world = await CleverCloudFixture.start({
    settings: {
      answerDelay: { minMs: 800, maxMs: 1_200 },
      nodeDelay: { minMs: 26_000, maxMs: 30_000 },
      syncDelay: { minMs: 38_000, maxMs: 58_000 },
      deletionDelay: { minMs: 30_000, maxMs: 40_000 },
    },
  })
  t.after(() => world.stop())
  const ready = new Set<number>()
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    world.create(name)
    const seconds = await world.until('ready', () => world.brief(name) === 'Synced Ready')
    assert.ok(seconds >= 38 && seconds <= 58, `${seconds}`)
    ready.add(seconds)
    world.delete(name)
    const gone = await world.until('gone', () => world.group(name) === undefined)
    assert.ok(gone >= 29 && gone <= 40, `${gone}`)
    assert.deepEqual(world.nodes(), [])
  }
  assert.ok(ready.size > 1)
})

test('a deleted group says so, keeps its node for half a minute, and goes when the node is gone', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  world.delete('a')
  await world.seconds(1)
  assert.equal(world.brief('a'), 'Synced Ready Terminating')
  await world.seconds(33.9)
  assert.deepEqual(world.nodes(), ['a-node0'])
  await world.seconds(1)
  assert.deepEqual([world.nodes(), world.brief('a')], [[], 'gone'])
  assert.deepEqual(world.cloud.instances(), [])
})

test('a node loses power soon after the deletion of its group, and is missed by the cluster or says so', async (t) => {
  const silent = await CleverCloudFixture.start({
    settings: { deletionDelay: { minMs: 90_000, maxMs: 90_000 } },
  })
  const open = await CleverCloudFixture.start({ settings: { nodesReportPowerOff: true } })
  t.after(() => {
    silent.stop()
    open.stop()
  })
  const isReady = (world: CleverCloudFixture) =>
    world.node('a-node0')?.status?.conditions?.find(({ type }) => type === 'Ready')?.status
  for (const world of [silent, open]) {
    world.create('a')
    await world.seconds(60)
    world.delete('a')
    await world.seconds(1.9)
    assert.deepEqual([world.cluster.kubelets.running(), isReady(world)], [['a-node0'], 'True'])
    await world.seconds(0.2)
    assert.deepEqual(world.cluster.kubelets.running(), [])
  }
  assert.deepEqual([isReady(silent), isReady(open)], ['True', 'False'])
  await silent.seconds(42)
  assert.equal(isReady(silent), 'Unknown')
})

test('a group waits for a node that finalizers hold, and goes as soon as they are gone', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  world.api.patch(kinds.node, undefined, 'a-node0', {
    metadata: { finalizers: ['karpenter.sh/termination'] },
  })
  world.delete('a')
  await world.seconds(300)
  assert.ok(world.node('a-node0')?.metadata.deletionTimestamp)
  assert.equal(world.brief('a'), 'Synced Ready Terminating')
  world.api.patch(kinds.node, undefined, 'a-node0', { metadata: { finalizers: null } })
  await world.seconds(0.1)
  assert.deepEqual([world.nodes(), world.brief('a')], [[], 'gone'])
})

test('a node that is deleted while its group goes does not register again', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  world.delete('a')
  await world.seconds(1)
  world.api.delete(kinds.node, undefined, 'a-node0')
  await world.seconds(20)
  assert.deepEqual([world.nodes(), world.brief('a')], [[], 'Synced Ready Terminating'])
  await world.seconds(20)
  assert.equal(world.brief('a'), 'gone')
})

test('a resized group gets more nodes, then loses those with the highest numbers', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  world.api.setScale(nodeGroupKind, undefined, 'a', 3)
  await world.seconds(1)
  assert.equal(world.brief('a'), 'Synced Ready ReconcileInProgress')
  await world.seconds(40)
  assert.deepEqual(world.nodes(), ['a-node0', 'a-node1', 'a-node2'])
  assert.equal(world.api.scale(nodeGroupKind, undefined, 'a')?.replicas, 3)
  assert.equal(world.brief('a'), 'Synced Ready')
  world.cloud.resize('a', 1)
  await world.seconds(34)
  assert.deepEqual(world.nodes(), ['a-node0', 'a-node1', 'a-node2'])
  await world.seconds(2)
  assert.deepEqual([world.nodes(), world.brief('a')], [['a-node0'], 'Synced Ready'])
})

test('a group without nodes gets ready, and goes at once', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a', { nodeCount: 0 })
  await world.seconds(60)
  assert.equal(world.brief('a'), 'Synced Ready')
  world.delete('a')
  await world.seconds(2)
  assert.equal(world.brief('a'), 'gone')
})

test('instances are billed from the acceptance of their group, in hours of the smallest flavor', async (t) => {
  const world = await CleverCloudFixture.start({ settings: { quota: { cpu: 1000, memoryGb: 1000 } } })
  t.after(() => world.stop())
  for (const { name } of builtInFlavors) world.create(name.toLowerCase(), { flavor: name })
  await world.seconds(2)
  assert.deepEqual(
    world.cloud.instances().map(({ name, pricePerHour }) => [name, pricePerHour?.toFixed(4)]),
    [
      ['2xs-node0', '1.0000'],
      ['xs-node0', '1.8554'],
      ['s-node0', '2.7097'],
      ['m-node0', '3.5660'],
      ['l-node0', '5.1084'],
      ['xl-node0', '6.8212'],
    ],
  )
})

test('the control plane is three nodes that take pods, or none that anyone sees', async (t) => {
  const without = await CleverCloudFixture.start()
  const within = await CleverCloudFixture.start({ controlPlane: inside })
  t.after(() => {
    without.stop()
    within.stop()
  })
  await within.seconds(5)
  assert.deepEqual(without.nodes(), [])
  assert.deepEqual(within.nodes(), ['control-plane-node0', 'control-plane-node1', 'control-plane-node2'])
  const { metadata, spec } = within.node('control-plane-node0') ?? {}
  assert.equal(metadata?.labels?.['clever-cloud.com/cluster-node-role'], 'control-plane')
  assert.equal(metadata?.labels?.['clever-cloud.com/flavor'], 'S')
  assert.equal(spec?.taints, undefined)
  assert.deepEqual(within.cloud.instances(), [])
  assert.deepEqual(within.cloud.quota().used, { cpu: 24, memoryGb: 24 })
})
