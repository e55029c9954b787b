/** Nothing is destroyed based on one answer (reports.md 9). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, type KubeObject, type ResourceType } from '@tenon/api'
import { ExoscaleClient } from '@tenon/provider-exoscale'
import { oneChunk, readText, type Transport } from '@tenon/runtime'
import { exoscaleOptions, type World } from '../world.ts'
import {
  assertMatched,
  callsTo,
  healthyCluster,
  instanceIds,
  podNames,
  runningPods,
} from './healthy-cluster.test-support.ts'

const minute = 60_000

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
  readonly involvedObject: { readonly kind: string }
}

/** Lists of NodeClaims are well formed, and empty, while `isLying`. */
function lyingApi(isLying: () => boolean): (inner: Transport) => Transport {
  return (inner) => ({
    async send(request, signal) {
      const path = request.path.split('?')[0] ?? ''
      const isList = request.method === 'GET' && path.endsWith('/nodeclaims')
      if (!isList || !isLying() || request.path.includes('watch=true'))
        return await inner.send(request, signal)
      const body = {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodeClaimList',
        metadata: { resourceVersion: '1' },
        items: [],
      }
      return {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: oneChunk(JSON.stringify(body)),
      }
    },
  })
}

/** Lists of instances omit those that `isHidden` names. */
function lyingCloud(isHidden: (id: string) => boolean): (inner: Transport) => Transport {
  return (inner) => ({
    async send(request, signal) {
      const response = await inner.send(request, signal)
      if (request.method !== 'GET' || request.path.split('?')[0] !== '/v2/instance') return response
      const { instances } = JSON.parse(await readText(response.body)) as { instances: { id: string }[] }
      const told = { instances: instances.filter(({ id }) => !isHidden(id)) }
      return { ...response, body: oneChunk(JSON.stringify(told)) }
    },
  })
}

function administrator(world: World): ExoscaleClient {
  const { apiKey, apiSecret } = exoscaleOptions()
  return new ExoscaleClient({
    transport: { send: world.cluster.cloud.handle },
    basePath: '/v2',
    credentials: { key: apiKey, secret: apiSecret },
    clock: world.clock,
    userAgent: 'somebody',
  })
}

async function aLeakedInstance(world: World, claim: string): Promise<string> {
  const api = administrator(world)
  const types = await api.listInstanceTypes()
  const template = await api.getActiveNodepoolTemplate('1.34.1', 'standard')
  const operation = await api.createInstance({
    name: claim,
    'disk-size': 50,
    'instance-type': {
      id: types.find(({ family, size }) => `${family}.${size}` === 'standard.small')?.id ?? '',
    },
    template: { id: template },
    labels: {
      'exoscale.com/managed-by': 'karpenter',
      'exoscale.com/cluster-id': exoscaleOptions().clusterId,
      'exoscale.com/node-claim': claim,
    },
  })
  return operation.reference?.id ?? ''
}

for (const [how, minutes] of [
  ['once', 6],
  ['for an hour', 60],
] as const) {
  test(`RPT-35 an empty list of NodeClaims, ${how}, costs none of 14 healthy instances`, async (t) => {
    let isLying = false
    const world = await healthyCluster(t, 14, { apiPath: lyingApi(() => isLying) })
    const before = [instanceIds(world), podNames(world)]
    isLying = true
    await world.clock.advance(minutes * minute)
    isLying = false
    await world.clock.advance(20 * minute)
    assert.equal(callsTo(world, 'delete-instance'), 0)
    assert.deepEqual([instanceIds(world), podNames(world)], before)
    const events = world.cluster.server.local.list(kinds.event as ResourceType<EventObject>)
    const told = events.filter(({ reason }) => reason === 'InstanceSweepHeld')
    assert.ok(told.length > 0, 'somebody is told')
    assert.equal(told[0]?.involvedObject.kind, 'ExoscaleNodeClass')
    assert.match(told[0]?.message ?? '', /^14 of 14 instances have no NodeClaim/)
  })
}

test('RPT-35 three real orphans among 14 instances go, one after the other', async (t) => {
  const world = await healthyCluster(t, 11)
  const owned = instanceIds(world)
  const orphans: string[] = []
  for (const name of ['a', 'b', 'c']) orphans.push(await aLeakedInstance(world, `gone-${name}`))
  await world.clock.advance(11 * minute)
  assert.equal(callsTo(world, 'delete-instance'), 0, 'three of fourteen are too many for one pass')
  await world.clock.advance(20 * minute)
  assert.deepEqual(instanceIds(world), owned)
  assert.equal(callsTo(world, 'delete-instance'), 3)
  assertMatched(world, 'what is owned stays')
})

test('RPT-35 two real orphans among 14 instances go in one pass', async (t) => {
  const world = await healthyCluster(t, 12)
  const owned = instanceIds(world)
  for (const name of ['a', 'b']) await aLeakedInstance(world, `gone-${name}`)
  await world.clock.advance(22 * minute)
  assert.deepEqual(instanceIds(world), owned)
})

test('RPT-35 an instance whose claim one list does not show is asked for by name', async (t) => {
  let hidden: string | undefined
  const world = await healthyCluster(t, 14, {
    apiPath: (inner) => ({
      async send(request, signal) {
        const response = await inner.send(request, signal)
        const isList =
          request.method === 'GET' && request.path.split('?')[0]?.endsWith('/nodeclaims') === true
        if (hidden === undefined || !isList || request.path.includes('watch=true')) return response
        const list = JSON.parse(await readText(response.body)) as { items: { metadata: { name: string } }[] }
        const items = list.items.filter(({ metadata }) => metadata.name !== hidden)
        return { ...response, body: oneChunk(JSON.stringify({ ...list, items })) }
      },
    }),
  })
  const before = [instanceIds(world), podNames(world)]
  hidden = world.claims()[0]?.metadata.name
  await world.clock.advance(60 * minute)
  assert.deepEqual([instanceIds(world), podNames(world)], before)
})

test('RPT-36 a draining claim keeps its finalizer, and its pods their budget, while the instance answers', async (t) => {
  const hidden = new Set<string>()
  const world = await healthyCluster(t, 6, { cloudPath: lyingCloud((id) => hidden.has(id)) })
  world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  })
  await world.clock.advance(minute)
  const before = podNames(world)
  for (const id of instanceIds(world)) hidden.add(id)
  for (const { metadata } of world.claims())
    world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, metadata.name)
  await world.clock.advance(60 * minute)
  assert.equal(world.claims().length, 6)
  assert.equal(callsTo(world, 'delete-instance'), 0)
  assert.deepEqual(podNames(world), before)
  assert.equal(runningPods(world), 6)
})

test('RPT-36 instances that a list leaves out cost no claim', async (t) => {
  let isHiding = false
  const world = await healthyCluster(t, 6, { cloudPath: lyingCloud(() => isHiding) })
  const before = [instanceIds(world), podNames(world)]
  isHiding = true
  // A silent kubelet bears the list out, until the cloud is asked for the one instance.
  for (const name of world.cluster.kubelets.running()) world.cluster.kubelets.silence(name, 3 * minute)
  await world.clock.advance(4 * minute)
  isHiding = false
  await world.clock.advance(10 * minute)
  assert.deepEqual([instanceIds(world), podNames(world)], before)
})

for (const providerID of [
  'exoscale://undefined',
  'exoscale://',
  'aws:///eu-west-1a/i-0123456789',
  'undefined',
]) {
  test(`RPT-37 a claim with provider ID ${providerID} ends, and the instance with its label with it`, async (t) => {
    const world = await healthyCluster(t, 3)
    const [victim] = world.claims()
    const name = victim?.metadata.name ?? ''
    const [instance = ''] = world.instancesByClaim().get(name) ?? []
    const { local } = world.cluster.server
    local.patch(karpenterKinds.nodeClaim, undefined, name, { status: { providerID } }, 'status')
    await world.clock.advance(minute)
    world.scale('web', 2)
    // The ID of another provider is no ID of the Node, so that the claim ends by itself.
    const isThere = world.claims().some(({ metadata }) => metadata.name === name)
    assert.equal(isThere, !providerID.startsWith('aws'))
    if (isThere) local.delete(karpenterKinds.nodeClaim, undefined, name)
    await world.clock.advance(15 * minute)
    assert.ok(!world.claims().some(({ metadata }) => metadata.name === name))
    assert.ok(!instanceIds(world).includes(instance))
    assert.equal(runningPods(world), 2)
    await world.clock.advance(15 * minute)
    assertMatched(world, 'nothing is left over')
  })
}
