/** A cloud whose reads lag behind its writes, or that lies about creations. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isConditionTrue, karpenterKinds } from '@tenon/api'
import { oneChunk, readText, type Transport } from '@tenon/runtime'
import { aDeployment, deploymentKind, type RunningOperator, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const instancePath = /\/instance\/([0-9a-f-]{36})$/

/** Does not show an instance as long as `isHidden` says so. */
function hiding(isHidden: (id: string) => boolean): (inner: Transport) => Transport {
  const json = { 'content-type': 'application/json' }
  return (inner) => ({
    send: async (request, signal) => {
      const path = request.path.split('?')[0] ?? ''
      const id = instancePath.exec(path)?.[1]
      if (request.method === 'GET' && id !== undefined && isHidden(id))
        return { status: 404, headers: json, body: oneChunk('{"message":"not found"}') }
      const response = await inner.send(request, signal)
      if (request.method !== 'GET' || !path.endsWith('/instance')) return response
      const { instances = [] } = JSON.parse(await readText(response.body)) as { instances?: { id: string }[] }
      const shown = instances.filter((instance) => !isHidden(instance.id))
      return { ...response, headers: json, body: oneChunk(JSON.stringify({ instances: shown })) }
    },
  })
}

async function open(
  t: TestContext,
  cloudPath: (inner: Transport) => Transport,
): Promise<{ readonly world: World; readonly running: RunningOperator }> {
  const world = await World.start({ seed: 4, provider: 'exoscale', cloudPath })
  world.create(nodeClassKind, aNodeClass('standard'))
  world.create(
    karpenterKinds.nodePool,
    aPool('standard', ['standard.small', 'standard.medium', 'standard.large']),
  )
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  return { world, running }
}

const creations = (world: World): number =>
  world.cluster.cloud.calls().filter(({ operation }) => operation === 'create-instance').length

for (const misses of [1, 2, 5]) {
  test(`RPB-45 reads that miss a new instance ${misses} times lead to one creation`, async (t) => {
    const left = new Map<string, number>()
    const isHidden = (id: string) => {
      const count = left.get(id) ?? misses
      left.set(id, count - 1)
      return count > 0
    }
    const { world } = await open(t, hiding(isHidden))
    world.create(deploymentKind, aDeployment('web', 1))
    await world.clock.advance(10 * minute)
    assert.equal(creations(world), 1)
    assert.ok(world.claims().every((claim) => isConditionTrue(claim, 'Initialized')))
    assert.equal(world.cluster.cloud.instances().length, 1)
  })
}

test('RPB-45 reads that miss a new instance for ten minutes lead to one creation, also when the process dies', async (t) => {
  let untilMs = Number.POSITIVE_INFINITY
  let now = () => 0
  const { world, running } = await open(
    t,
    hiding(() => now() < untilMs),
  )
  now = () => world.clock.now()
  untilMs = now() + 10 * minute
  world.create(deploymentKind, aDeployment('web', 1))
  await world.clock.advance(minute / 2)
  await world.bury(running)
  const again = await world.startOperator()
  t.after(() => world.bury(again))
  await world.clock.advance(20 * minute)
  assert.equal(creations(world), 1)
  assert.ok(world.claims().every((claim) => isConditionTrue(claim, 'Initialized')))
  assert.equal(world.cluster.cloud.instances().length, 1)
})

const lies = {
  'made and refused': (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      const isCreation = request.method === 'POST' && request.path.endsWith('/instance')
      const body = oneChunk('{"message":"internal error"}')
      return isCreation ? { status: 400, headers: { 'content-type': 'application/json' }, body } : response
    },
  }),
  'made and lost': (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      if (request.method === 'POST' && request.path.endsWith('/instance')) throw new Error('connection reset')
      return response
    },
  }),
} as const

for (const [title, path] of Object.entries(lies)) {
  test(`RPB-46 a creation that is ${title} is found again and not made twice`, async (t) => {
    const { world } = await open(t, path)
    world.create(deploymentKind, aDeployment('web', 1))
    await world.clock.advance(60 * minute)
    assert.ok(creations(world) <= 6, `${creations(world)} creations`)
    assert.equal(world.cluster.cloud.instances().length, 1)
    assert.ok(world.pods().every(({ spec }) => spec.nodeName !== undefined))
  })
}

for (const fault of ['failOperation', 'hangOperation', 'refuse'] as const) {
  test(`RPB-46 with ${fault} for an hour there are at most 6 creations, and the pod is told`, async (t) => {
    const { world } = await open(t, (inner) => inner)
    const effect = {
      failOperation: { kind: fault, reason: 'fault', message: 'no luck' },
      hangOperation: { kind: fault },
      refuse: { kind: fault, status: 400 },
    }[fault]
    world.cluster.cloud.faults.add({ operation: 'create-instance', effect } as Parameters<
      typeof world.cluster.cloud.faults.add
    >[0])
    world.create(deploymentKind, aDeployment('web', 1))
    await world.clock.advance(60 * minute)
    assert.ok(creations(world) <= 6, `${creations(world)} creations`)
  })
}
