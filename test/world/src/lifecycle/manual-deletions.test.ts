/** What users delete by hand ends with nothing left in the cloud (lifecycle.md 15). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  annotations,
  karpenterKinds,
  kinds,
  type NodeClaim,
  type ResourceType,
  terminationFinalizer,
} from '@tenon/api'
import type { ProviderInstance } from '@tenon/provider'
import { ExoscaleClient, exoscaleNodeClassKind } from '@tenon/provider-exoscale'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { Secret } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'
import { ScriptedCloud } from '../testing/scripted-cloud.test-support.ts'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

const policies = ['Background', 'Foreground', 'Orphan'] as const
type Policy = (typeof policies)[number]

function deleteAs(stage: Stage, type: ResourceType, name: string, propagationPolicy: Policy): void {
  stage.world.cluster.server.local.delete(type, undefined, name, { propagationPolicy })
}

function assertNothingLeft(stage: Stage, creates: number): void {
  assert.deepEqual(
    {
      claims: stage.world.claims().map(({ metadata }) => metadata.name),
      nodes: stage.world.nodes().map(({ metadata }) => metadata.name),
      instances: stage.cloud.instances.map(({ providerID }) => providerID),
      creates: stage.cloud.count('create'),
    },
    { claims: [], nodes: [], instances: [], creates },
  )
}

/** An instance with a pod on it whose grace period ends `300 s` after its deletion. */
async function occupied(t: TestContext): Promise<Stage> {
  const stage = await Stage.open(t)
  stage.cloud.deletionMs = 7 * seconds
  await stage.ready('a', { terminationGracePeriod: '300s' })
  await stage.pod('p', 'node-a')
  return stage
}

for (const policy of policies) {
  for (const kind of ['node', 'nodeClaim'] as const) {
    const ids = kind === 'node' ? 'LIF-54 LIF-63' : 'LIF-48 LIF-54'
    test(`${ids} a ${kind} deleted with policy ${policy} is drained, and all of it goes`, async (t) => {
      const stage = await occupied(t)
      if (kind === 'node') deleteAs(stage, kinds.node, 'node-a', policy)
      else deleteAs(stage, karpenterKinds.nodeClaim, 'a', policy)
      await stage.pass(3 * seconds)
      assert.ok(stage.isLeaving('p'), 'the drain has begun')
      assert.equal(stage.cloud.count('delete'), 0, 'the instance waits for it')
      const { deletionTimestamp, annotations: stamps } = stage.claimNow('a')?.metadata ?? {}
      const deadline = Date.parse(stamps?.[annotations.terminationTimestamp] ?? '')
      assert.equal(deadline - Date.parse(deletionTimestamp ?? ''), 300 * seconds)
      await stage.end('p')
      await stage.pass(40 * seconds)
      assertNothingLeft(stage, 1)
    })
  }
}

test('LIF-144 the claims of a NodePool deleted in the background are drained after it has gone', async (t) => {
  const stage = await occupied(t)
  deleteAs(stage, karpenterKinds.nodePool, 'default', 'Background')
  await stage.pass(3 * seconds)
  assert.equal(stage.poolNow(), undefined)
  assert.ok(stage.isLeaving('p'))
  assert.notEqual(stage.nodeNow('node-a'), undefined)
  await stage.end('p')
  await stage.pass(40 * seconds)
  assertNothingLeft(stage, 1)
})

test('LIF-144 a NodePool deleted in the foreground waits for its claims', async (t) => {
  const stage = await occupied(t)
  deleteAs(stage, karpenterKinds.nodePool, 'default', 'Foreground')
  await stage.pass(3 * seconds)
  assert.ok(stage.isLeaving('p'))
  assert.notEqual(stage.poolNow()?.metadata.deletionTimestamp, undefined)
  await stage.end('p')
  await stage.pass(40 * seconds)
  assertNothingLeft(stage, 1)
  assert.equal(stage.poolNow(), undefined)
})

test('claims of a NodePool deleted with orphans live on, without drift, until they expire', async (t) => {
  const stage = await Stage.open(t, { pool: { disruption: { consolidateAfter: '30s' } } })
  await stage.ready('a', { expireAfter: '20m' })
  await stage.pod('p', 'node-a')
  deleteAs(stage, karpenterKinds.nodePool, 'default', 'Orphan')
  await stage.pass(seconds)
  stage.cloud.onIsDrifted = () => 'CloudSaysSo'
  await stage.pass(10 * minutes)
  assert.equal(stage.poolNow(), undefined)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
  assert.deepEqual(stage.claimNow('a')?.metadata.ownerReferences ?? [], [])
  assert.equal(stage.state('a', 'Drifted'), 'absent')
  await stage.pass(10 * minutes)
  assert.ok(stage.isLeaving('p'), 'it has expired')
  await stage.end('p')
  await stage.pass(40 * seconds)
  assertNothingLeft(stage, 1)
})

test('a Node and its claim deleted at once go together, and the instance once', async (t) => {
  const stage = await occupied(t)
  stage.delete(kinds.node, 'node-a')
  stage.delete(karpenterKinds.nodeClaim, 'a')
  await stage.pass(3 * seconds)
  assert.ok(stage.isLeaving('p'))
  await stage.end('p')
  await stage.pass(40 * seconds)
  assertNothingLeft(stage, 1)
})

/** A cloud that takes its time to answer a launch. */
class SlowCloud extends ScriptedCloud {
  readonly #pause: () => Promise<void>

  constructor(stage: () => Stage) {
    super(() => stage().world.clock)
    this.#pause = () => stage().world.clock.sleep(20 * seconds)
  }

  override async create(claim: NodeClaim): Promise<ProviderInstance> {
    await this.#pause()
    return await super.create(claim)
  }
}

test('LIF-50 a claim deleted while the cloud is still launching it takes its instance along', async (t) => {
  const opened: { stage?: Stage } = {}
  const cloud = new SlowCloud(() => opened.stage as Stage)
  const stage = await Stage.open(t, { provider: cloud, idle: true })
  opened.stage = stage
  await stage.start()
  await stage.claim('a')
  await stage.pass(5 * seconds)
  assert.equal(stage.claimNow('a')?.status?.providerID, undefined)
  stage.delete(karpenterKinds.nodeClaim, 'a')
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
  assert.deepEqual(cloud.instances, [])
  assert.equal(cloud.count('create'), 1)
})

test('LIF-50 LIF-146 a claim deleted after a launch that was not written down takes its instance along', async (t) => {
  let isRejecting = true
  const apiPath = intercepting((method, path) =>
    isRejecting && method === 'PATCH' && path.includes('/nodeclaims/a/status') ? 'error' : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.claim('a')
  assert.equal(stage.claimNow('a')?.status?.providerID, undefined)
  assert.equal(stage.cloud.instances.length, 1)
  isRejecting = false
  stage.delete(karpenterKinds.nodeClaim, 'a')
  await stage.pass(minutes)
  assertNothingLeft(stage, 1)
})

test('LIF-115 a Node torn out takes nothing along; the claim, deleted later, takes the instance and what joined since', async (t) => {
  const stage = await occupied(t)
  stage.patch(kinds.node, 'node-a', { metadata: { finalizers: null } })
  stage.delete(kinds.node, 'node-a')
  await stage.pass(5 * minutes)
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
  assert.equal(stage.cloud.instances.length, 1)
  await stage.join('a', { name: 'again' })
  await stage.pass(5 * seconds)
  const { metadata, spec } = stage.nodeNow('again') ?? {}
  assert.deepEqual(metadata?.finalizers, ['karpenter.sh/termination'], 'it is registered again')
  assert.ok(!spec?.taints?.some(({ key }) => key === 'karpenter.sh/unregistered'))
  await stage.deleteClaim('a')
  await stage.pass(40 * seconds)
  assertNothingLeft(stage, 1)
})

test('a claim torn out leaves a Node that drains; its instance is not for the core to end', async (t) => {
  const stage = await occupied(t)
  stage.patch(karpenterKinds.nodeClaim, 'a', { metadata: { finalizers: null } })
  stage.delete(karpenterKinds.nodeClaim, 'a')
  await stage.pass(3 * seconds)
  assert.ok(stage.isLeaving('p'))
  await stage.end('p')
  await stage.pass(10 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
  assert.equal(stage.cloud.count('delete'), 0)
})

test('a node class deleted while in use changes nothing for its instances, which can still be deleted', async (t) => {
  const stage = await occupied(t)
  stage.delete(kwokNodeClassKind, 'default')
  await stage.pass(10 * minutes)
  assert.equal(stage.state('a', 'Ready'), 'True/Ready')
  assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
  assert.equal(
    stage.poolNow()?.status?.conditions?.find(({ type }) => type === 'NodeClassReady')?.status,
    'False',
  )
  await stage.deleteClaim('a')
  await stage.end('p')
  await stage.pass(40 * seconds)
  assertNothingLeft(stage, 1)
})

test('LIF-150 an instance deleted in the cloud takes claim and Node along without a drain', async (t) => {
  const stage = await occupied(t)
  stage.cloud.lose('fake://a')
  await stage.report('node-a', 'Unknown')
  await stage.pass(2 * minutes + 10 * seconds)
  assert.ok(
    !stage.podNow('p') || stage.podNow('p')?.metadata.deletionTimestamp === undefined,
    'nobody was evicted',
  )
  assertNothingLeft(stage, 1)
})

test('a finalizer of others keeps the Node, not the instance', async (t) => {
  const stage = await occupied(t)
  stage.patch(kinds.node, 'node-a', { metadata: { finalizers: [terminationFinalizer, 'example.com/hold'] } })
  await stage.deleteClaim('a')
  await stage.end('p')
  await stage.pass(40 * seconds)
  assert.deepEqual(stage.nodeNow('node-a')?.metadata.finalizers, ['example.com/hold'])
  assert.equal(stage.cloud.instances.length, 0)
  assert.notEqual(stage.claimNow('a'), undefined)
  stage.patch(kinds.node, 'node-a', { metadata: { finalizers: null } })
  await stage.pass(10 * seconds)
  assertNothingLeft(stage, 1)
})

/** A world with instances that run pods by themselves; its NodePool is `default`. */
async function openWorld(t: TestContext, nodeRegistrationDelay = '0s'): Promise<World> {
  const world = await World.start({ seed: 1, provider: 'kwok' })
  const header = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
  world.create(kwokNodeClassKind, {
    ...header,
    metadata: { name: 'default' },
    spec: { nodeRegistrationDelay },
  })
  world.create(karpenterKinds.nodePool, aKwokPool())
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  return world
}

for (const policy of ['Background', 'Foreground'] as const) {
  test(`LIF-144 no instance is launched for the pods of a NodePool deleted with policy ${policy}`, async (t) => {
    const world = await openWorld(t)
    const { local } = world.cluster.server
    const made = new Set<string>()
    local.subscribe(karpenterKinds.nodeClaim, { added: ({ metadata }) => made.add(metadata.name) })
    world.create(deploymentKind, aDeployment('web', 3))
    const isRunning = () => world.pods().filter(({ status }) => status?.phase === 'Running').length === 3
    assert.ok(await world.clock.advanceUntil(isRunning, 2 * minutes))
    const before = made.size
    local.delete(karpenterKinds.nodePool, undefined, 'default', { propagationPolicy: policy })
    await world.clock.advance(2 * minutes)
    assert.deepEqual([world.claims(), world.nodes()], [[], []])
    assert.equal(local.get(karpenterKinds.nodePool, undefined, 'default'), undefined)
    assert.equal(world.pods().filter(({ status }) => status?.phase === 'Pending').length, 3)
    assert.equal(made.size, before)
  })
}

test('a claim deleted before its simulated Node appeared calls the Node off', async (t) => {
  const world = await openWorld(t, '30s')
  const { local } = world.cluster.server
  world.create(deploymentKind, aDeployment('web', 1))
  const isLaunched = () => world.claims().some(({ status }) => status?.providerID !== undefined)
  assert.ok(await world.clock.advanceUntil(isLaunched, minutes))
  world.scale('web', 0)
  for (const { metadata } of world.claims()) local.delete(karpenterKinds.nodeClaim, undefined, metadata.name)
  await world.clock.advance(2 * minutes)
  assert.deepEqual([world.claims(), world.nodes()], [[], []])
})

/** Two pods on an Exoscale instance of its own, whose NodePool and class are `default`. */
async function openExoscale(t: TestContext): Promise<{ readonly world: World; readonly claim: string }> {
  const world = await World.start({ seed: 1, provider: 'exoscale' })
  world.create(exoscaleNodeClassKind, {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: { name: 'default' },
    spec: { imageTemplateSelector: {}, diskSize: 50 },
  })
  const pool = aKwokPool()
  const nodeClassRef = { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'default' }
  const types = {
    key: 'node.kubernetes.io/instance-type',
    operator: 'In',
    values: ['standard.medium'],
  } as const
  const template = { spec: { nodeClassRef, requirements: [types] } }
  world.create(karpenterKinds.nodePool, { ...pool, spec: { ...pool.spec, template } })
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  world.create(deploymentKind, aDeployment('web', 2))
  const isRunning = () => world.pods().filter(({ status }) => status?.phase === 'Running').length === 2
  assert.ok(await world.clock.advanceUntil(isRunning, 5 * minutes))
  await world.clock.advance(10 * seconds)
  return { world, claim: world.claims()[0]?.metadata.name ?? '' }
}

const isEmpty = (world: World) =>
  world.claims().length === 0 && world.nodes().length === 0 && world.cluster.cloud.instances().length === 0

test('LIF-148 the instance of a claim that was torn out is ended by the sweeper of the provider', async (t) => {
  const { world, claim } = await openExoscale(t)
  const { local } = world.cluster.server
  await world.clock.advance(5 * minutes)
  world.scale('web', 0)
  local.patch(karpenterKinds.nodeClaim, undefined, claim, { metadata: { finalizers: null } })
  local.delete(karpenterKinds.nodeClaim, undefined, claim)
  const [node] = world.nodes()
  await world.clock.advance(30 * seconds)
  const stands = (uid = '') => world.nodes().some(({ metadata }) => metadata.uid === uid)
  assert.ok(!stands(node?.metadata.uid), 'drained and gone; the kubelet, still alive, may have joined again')
  assert.equal(world.cluster.cloud.instances().length, 1)
  // Its claim may only have been lost: that is announced for ten minutes.
  assert.ok(await world.clock.advanceUntil(() => isEmpty(world), 16 * minutes))
})

test('LIF-150 an instance deleted in the console of the cloud takes claim and Node along within minutes', async (t) => {
  const { world, claim } = await openExoscale(t)
  const console = new ExoscaleClient({
    transport: { send: world.cluster.cloud.handle },
    basePath: '/v2',
    credentials: { key: 'EXOtenon0000000000000000001', secret: new Secret('simulated-secret') },
    clock: world.clock,
    userAgent: 'console',
  })
  const [instance] = world.cluster.cloud.instances()
  const deleting = console.deleteInstance(instance?.id ?? '')
  world.scale('web', 0)
  await world.clock.advance(5 * minutes)
  await deleting
  assert.ok(!world.claims().some(({ metadata }) => metadata.name === claim))
  assert.ok(isEmpty(world))
})

test('EXO-26 a node class in use stays until its last claim has gone', async (t) => {
  const { world, claim } = await openExoscale(t)
  const { local } = world.cluster.server
  local.delete(exoscaleNodeClassKind, undefined, 'default')
  await world.clock.advance(2 * minutes)
  assert.notEqual(local.get(exoscaleNodeClassKind, undefined, 'default'), undefined)
  assert.equal(world.cluster.cloud.instances().length, 1)
  world.scale('web', 0)
  local.delete(karpenterKinds.nodeClaim, undefined, claim)
  await world.clock.advance(2 * minutes)
  assert.equal(local.get(exoscaleNodeClassKind, undefined, 'default'), undefined)
  assert.ok(isEmpty(world))
})
