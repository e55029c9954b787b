/** A cloud that lies about what it creates: one pod, an hour, few creations, and users hear of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isConditionTrue, karpenterKinds, kinds } from '@tenon/api'
import { type HttpResponse, oneChunk, readText, type Transport } from '@tenon/runtime'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const day = 24 * 60 * minute
const claimLabel = 'exoscale.com/node-claim'

type Instance = Readonly<Record<string, unknown>>
type Lie = (world: () => World) => (inner: Transport) => Transport

function answer(status: number, body: object): HttpResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: oneChunk(JSON.stringify(body)) }
}

/** Events by which a NodePool or NodeClaim tells that launches come to nothing. */
const reasons: ReadonlySet<string> = new Set(['LaunchFailed', 'LaunchesPaused', 'NodeNeverJoined'])

/** What a creation is answered instead of the truth. */
function creation(answerOf: (send: () => Promise<HttpResponse>, world: World) => Promise<HttpResponse>): Lie {
  return (world) => (inner) => ({
    send: async (request, signal) => {
      const isCreation = request.method === 'POST' && request.path.endsWith('/instance')
      const send = () => inner.send(request, signal)
      return isCreation ? await answerOf(send, world()) : await send()
    },
  })
}

/** How instances look to whoever reads them. */
function shown(change: (instance: Instance) => Instance): Lie {
  return () => (inner) => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      const path = request.path.split('?')[0] ?? ''
      if (request.method !== 'GET' || response.status !== 200 || !/\/instance(\/[0-9a-f-]{36})?$/.test(path))
        return response
      const body = JSON.parse(await readText(response.body)) as Instance & { instances?: readonly Instance[] }
      return answer(200, body.instances ? { instances: body.instances.map(change) } : change(body))
    },
  })
}

function refusedAndMade(status: number, afterMs: number): Lie {
  return creation(async (send, world) => {
    world.clock.after(afterMs, () => {
      send().catch(() => undefined)
    })
    return answer(status, { message: 'internal error' })
  })
}

const madeAndRefused = (status: number): Lie =>
  creation(async (send) => {
    await send()
    return answer(status, { message: 'internal error' })
  })

const aged = (offMs: number): Lie =>
  shown((instance) => {
    const created = Date.parse(String(instance['created-at']))
    return { ...instance, 'created-at': new Date(created + offMs).toISOString() }
  })

const neverEnding: Lie = () => (inner) => ({
  send: async (request, signal) => {
    const response = await inner.send(request, signal)
    if (!request.path.includes('/operation/') || response.status !== 200) return response
    return answer(200, { ...(JSON.parse(await readText(response.body)) as object), state: 'pending' })
  },
})

const lies: Readonly<Record<string, Lie>> = {
  'made and refused with 400': madeAndRefused(400),
  'made and refused with 409': madeAndRefused(409),
  'made and refused with 500': madeAndRefused(500),
  'refused with 400 and made 1 s later': refusedAndMade(400, 1000),
  'refused with 503 and made 1 s later': refusedAndMade(503, 1000),
  'refused with 400 and made 30 s later': refusedAndMade(400, 30_000),
  'refused with 503 and made 30 s later': refusedAndMade(503, 30_000),
  'refused with 400 and made 5 min later': refusedAndMade(400, 5 * minute),
  'made twice': creation(async (send) => {
    await send()
    return await send()
  }),
  'made, and the operation never ends': neverEnding,
  'shown a day old': aged(-day),
  'shown a day from now': aged(day),
  'shown without labels': shown((instance) => ({ ...instance, labels: {} })),
  'shown with the label of another claim': shown((instance) => ({
    ...instance,
    labels: { ...(instance['labels'] as object), [claimLabel]: 'another' },
  })),
  'shown with labels of another cluster': shown((instance) => ({
    ...instance,
    labels: Object.fromEntries(Object.entries(instance['labels'] as object).map(([key]) => [key, 'another'])),
  })),
}

for (const [title, lie] of Object.entries(lies))
  test(`RPB-46 an instance that is ${title}: at most 6 creations in an hour, and the pod runs or is told why`, async (t) => {
    let world: World | undefined
    const started = await World.start({
      seed: 4,
      provider: 'exoscale',
      cloudPath: lie(() => world ?? assert.fail()),
    })
    world = started
    started.create(nodeClassKind, aNodeClass('standard'))
    const types = ['standard.small', 'standard.medium', 'standard.large']
    started.create(karpenterKinds.nodePool, aPool('standard', types))
    const running = await started.startOperator()
    t.after(async () => {
      await started.bury(running)
      await started.stop()
    })
    started.create(deploymentKind, aDeployment('web', 1))
    await started.clock.advance(60 * minute)
    const creations = started.cluster.cloud
      .calls()
      .filter(({ operation }) => operation === 'create-instance').length
    assert.ok(creations <= 6, `${creations} creations`)
    const [claim] = started.claims()
    if (claim !== undefined && isConditionTrue(claim, 'Initialized')) {
      assert.ok(started.pods().every(({ spec }) => spec.nodeName === claim.status?.nodeName))
      assert.equal(started.cluster.cloud.instances().length, 1)
      return
    }
    const told = started.cluster.server.local
      .list(kinds.event)
      .map((event) => (event as { readonly reason?: string }).reason ?? '')
      .filter((each) => reasons.has(each))
    assert.notDeepEqual(told, [])
  })
