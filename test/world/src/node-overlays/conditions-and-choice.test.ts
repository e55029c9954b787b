import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  conditionOf,
  karpenterKinds,
  kinds,
  labels,
  type NodeClaim,
  type NodeOverlay,
  type Requirement,
} from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { ProviderError } from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { hours, minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'
import {
  aType,
  createPool,
  madeClaims,
  PoolCloud,
  objectsWithEvent,
  waitingPod,
} from '../testing/pools.test-support.ts'
import { aKwokPool, World, type WorldOptions } from '../world.ts'

const withOverlays: Partial<Settings> = {
  featureGates: { ...defaultSettings.featureGates, nodeOverlay: true },
}
const priceApplied = 'karpenter.sh/price-overlay-applied'
const capacityApplied = 'karpenter.sh/capacity-overlay-applied'
const fuse = 'example.com/fuse'
const only = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })

function anOverlay(name: string, spec: Partial<NodeOverlay['spec']> = {}): NodeOverlay {
  return {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name },
    spec: { requirements: [], ...spec },
  }
}

function applied({ metadata }: NodeClaim): readonly string[] {
  return [priceApplied, capacityApplied].filter((key) => metadata.annotations?.[key] === 'true')
}

function typesOf({ spec }: NodeClaim): readonly string[] {
  return spec.requirements.find(({ key }) => key === labels.instanceType)?.values ?? []
}

/** A world with KWOK nodes and these overlays, an operator at work in it. */
async function openKwok(
  t: TestContext,
  overlays: readonly NodeOverlay[],
  settings: Partial<Settings> = withOverlays,
): Promise<World> {
  const world = await World.start({ seed: 1, provider: 'kwok', settings })
  const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
  world.create(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'default' }, spec: {} })
  world.create(karpenterKinds.nodePool, aKwokPool())
  for (const overlay of overlays) world.create(karpenterKinds.nodeOverlay, overlay)
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  await world.clock.advance(2 * seconds)
  return world
}

/** The first claim for one pod that asks for this. */
async function claimFor(world: World, requests: Readonly<Record<string, string>>): Promise<NodeClaim> {
  world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', namespace: 'default' },
    spec: { containers: [{ name: 'app', image: 'app', resources: { requests, limits: requests } }] },
  })
  await world.clock.advanceUntil(() => world.claims().length > 0, 30 * seconds)
  const [claim] = world.claims()
  assert.ok(claim !== undefined)
  return claim
}

describe('with KWOK nodes', () => {
  const large = [only(labels.instanceType, 'm-8x-amd64-linux')]

  test('the claim lists the type that an overlay makes the cheapest, and says that one did', async (t) => {
    const world = await openKwok(t, [anOverlay('deal', { price: '0.01', requirements: large })])
    const claim = await claimFor(world, { cpu: '1' })
    assert.ok(typesOf(claim).includes('m-8x-amd64-linux'))
    assert.deepEqual(applied(claim), [priceApplied])
  })

  test('an overlay on types that are not chosen leaves no mark', async (t) => {
    const windows = [only(labels.os, 'windows')]
    const world = await openKwok(t, [
      anOverlay('deal', { price: '0.01', capacity: { [fuse]: '1' }, requirements: windows }),
    ])
    assert.deepEqual(applied(await claimFor(world, { cpu: '1' })), [])
  })

  test('STA-108 a pod that asks for what only an overlay gives gets a claim with both marks', async (t) => {
    const world = await openKwok(t, [
      anOverlay('devices', { capacity: { [fuse]: '4' }, requirements: large }),
      anOverlay('discount', { priceAdjustment: '-10%' }),
    ])
    const claim = await claimFor(world, { cpu: '1', [fuse]: '2' })
    assert.deepEqual(typesOf(claim), ['m-8x-amd64-linux'])
    assert.deepEqual(applied(claim), [priceApplied, capacityApplied])
  })

  for (const compatibility of ['karpenter', 'none'] as const)
    test(`STA-120 WNT-41 without the feature gate overlays do nothing (compatibility ${compatibility})`, async (t) => {
      const overlays = [anOverlay('deal', { price: '0.01', capacity: { [fuse]: '4' } })]
      const world = await openKwok(t, overlays, { compatibility })
      assert.deepEqual(applied(await claimFor(world, { cpu: '1' })), [])
      const [overlay] = world.cluster.server.local.list(karpenterKinds.nodeOverlay)
      if (compatibility === 'karpenter') assert.equal(overlay?.status, undefined)
      else assert.equal(overlay && conditionOf(overlay, 'FieldIgnored')?.status, 'True')
    })
})

/** A stage on which a test can say per pool what the cloud sells. */
async function openPools(
  t: TestContext,
  options: Partial<WorldOptions> = {},
): Promise<{ readonly stage: Stage; readonly cloud: PoolCloud }> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = [aType('medium', 4)]
  stage = await Stage.open(t, { idle: true, provider: cloud, settings: withOverlays, ...options })
  return { stage, cloud }
}

function createOverlay(stage: Stage, overlay: NodeOverlay): void {
  stage.world.create(karpenterKinds.nodeOverlay, overlay)
}

/** `Status/Reason` of an overlay's conditions. */
function states(stage: Stage, name: string): readonly string[] {
  const overlay = stage.world.cluster.server.local.get(karpenterKinds.nodeOverlay, undefined, name)
  return ['ValidationSucceeded', 'Ready'].map((type) => {
    const condition = overlay === undefined ? undefined : conditionOf(overlay, type)
    return condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
  })
}

const succeeded = ['True/ValidationSucceeded', 'True/Ready']
const refused = (reason: string) => [`False/${reason}`, 'False/UnhealthyDependents']

function poolsOf(claims: readonly NodeClaim[]): readonly (string | undefined)[] {
  return claims.map(({ metadata }) => metadata.labels?.[labels.nodePool])
}

describe('pools that are not evaluated', () => {
  test('SCH-146 STA-92 API-107 are skipped until their types can be listed', async (t) => {
    const { stage, cloud } = await openPools(t)
    let isBroken = true
    const listed: number[] = []
    cloud.onListTypes = ({ metadata }) => {
      if (metadata.name !== 'broken') return cloud.instanceTypes
      listed.push(stage.now)
      if (isBroken) throw new ProviderError('other', 'the catalogue is down')
      return cloud.instanceTypes
    }
    createPool(stage, aKwokPool('broken', { weight: 100 }))
    createOverlay(stage, anOverlay('discount', { priceAdjustment: '-10%' }))
    await stage.start()
    await stage.pass(2 * minutes)
    const pauses = listed.slice(1).map((at, i) => at - (listed[i] as number))
    assert.ok(pauses.length > 5 && Math.max(...pauses) <= minutes, `tried again after ${pauses.join()} ms`)
    assert.deepEqual(states(stage, 'discount'), succeeded)

    // The provider recovers, but the pool counts again only once it was evaluated.
    isBroken = false
    waitingPod(stage, 'early', { cpu: '3' })
    await stage.pass(3 * seconds)
    assert.deepEqual(poolsOf(madeClaims(stage)), ['default'])
    assert.deepEqual(applied(madeClaims(stage)[0] as NodeClaim), [priceApplied])
    assert.deepEqual(objectsWithEvent(stage, 'NoCompatibleInstanceTypes'), [])

    await stage.pass(minutes)
    waitingPod(stage, 'late', { cpu: '3' })
    await stage.pass(5 * seconds)
    assert.deepEqual(poolsOf(madeClaims(stage)), ['default', 'broken'])
    assert.deepEqual(applied(madeClaims(stage)[1] as NodeClaim), [priceApplied])
  })

  test('STA-107 a pool that fails does not hold back the others, and is tried until it recovers', async (t) => {
    const { stage, cloud } = await openPools(t)
    let isBroken = true
    const listed: number[] = []
    cloud.onListTypes = ({ metadata }) => {
      if (metadata.name !== 'broken') return cloud.instanceTypes
      listed.push(stage.now)
      if (isBroken) throw new ProviderError('other', 'the catalogue is down')
      return cloud.instanceTypes
    }
    createPool(stage, aKwokPool('broken', { limits: { cpu: '0' } }))
    createOverlay(stage, anOverlay('discount', { priceAdjustment: '-10%' }))
    await stage.start()
    await stage.pass(10 * minutes)
    const pauses = listed.slice(1).map((at, i) => at - (listed[i] as number))
    assert.ok(pauses[0] !== undefined && pauses[0] < seconds, `tried again after ${pauses[0]} ms`)
    const latest = pauses.slice(-3)
    assert.ok(
      Math.min(...latest) > 30 * seconds && Math.max(...latest) <= minutes,
      `after ${latest.join()} ms`,
    )
    assert.deepEqual(states(stage, 'discount'), succeeded)
    const pod = waitingPod(stage, 'pod')
    await stage.pass(5 * seconds)
    assert.deepEqual(poolsOf(madeClaims(stage)), ['default'])
    assert.deepEqual(applied(madeClaims(stage)[0] as NodeClaim), [priceApplied])

    // Only the evaluation is to list types from here on.
    await stage.end(pod.metadata.name)
    await stage.deleteClaim(madeClaims(stage)[0]?.metadata.name ?? '')
    isBroken = false
    await stage.pass(2 * minutes)
    const recovered = listed.at(-1) ?? 0
    const count = listed.length
    await stage.pass(recovered + 6 * hours - stage.now - seconds)
    assert.equal(listed.length, count)
    await stage.pass(2 * seconds)
    assert.equal(listed.length, count + 1)
  })

  test('STA-129 a new pool launches once it was evaluated', async (t) => {
    const { stage, cloud } = await openPools(t)
    let isFirst = true
    cloud.onListTypes = async ({ metadata }) => {
      if (metadata.name === 'new' && isFirst) {
        isFirst = false
        await stage.world.clock.sleep(20 * seconds)
      }
      return cloud.instanceTypes
    }
    await stage.start()
    createPool(stage, aKwokPool('new', { weight: 100 }))
    await stage.pass(2 * seconds)
    waitingPod(stage, 'early', { cpu: '3' })
    await stage.pass(5 * seconds)
    assert.deepEqual(poolsOf(madeClaims(stage)), ['default'])
    await stage.pass(20 * seconds)
    waitingPod(stage, 'late', { cpu: '3' })
    await stage.pass(5 * seconds)
    assert.deepEqual(poolsOf(madeClaims(stage)), ['default', 'new'])
  })
})

describe('what overlays say of themselves', () => {
  test('API-98 STA-106 conflicts and mistakes are told, and end when their cause does', async (t) => {
    const { stage } = await openPools(t)
    createOverlay(stage, anOverlay('a', { capacity: { [fuse]: '1' } }))
    createOverlay(stage, anOverlay('b', { capacity: { [fuse]: '2' } }))
    const longKey = `example.com/${'k'.repeat(64)}`
    createOverlay(stage, anOverlay('wrong', { price: '1', requirements: [only(longKey, 'x')] }))
    await stage.start()
    assert.deepEqual(states(stage, 'a'), refused('Conflict'))
    assert.deepEqual(states(stage, 'b'), succeeded)
    assert.deepEqual(states(stage, 'wrong'), refused('RuntimeValidation'))
    const resources = { requests: { [fuse]: '2' }, limits: { [fuse]: '2' } }
    waitingPod(stage, 'pod', { spec: { containers: [{ name: 'app', image: 'app', resources }] } })
    await stage.pass(5 * seconds)
    assert.deepEqual(applied(madeClaims(stage)[0] as NodeClaim), [capacityApplied])

    stage.delete(karpenterKinds.nodeOverlay, 'b')
    stage.patch(karpenterKinds.nodeOverlay, 'wrong', { spec: { requirements: [] } })
    await stage.pass(2 * seconds)
    assert.deepEqual(states(stage, 'a'), succeeded)
    assert.deepEqual(states(stage, 'wrong'), succeeded)
  })

  test('no pool is evaluated before every overlay was told its outcome; pods wait in silence', async (t) => {
    let isRejecting = true
    const apiPath = intercepting((method, path) =>
      isRejecting && method === 'PATCH' && path.includes('/nodeoverlays/') ? 'conflict' : 'pass',
    )
    const { stage } = await openPools(t, { apiPath })
    createOverlay(stage, anOverlay('discount', { priceAdjustment: '-10%' }))
    await stage.start()
    waitingPod(stage, 'pod')
    await stage.pass(15 * seconds)
    assert.deepEqual(states(stage, 'discount'), ['absent', 'absent'])
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(stage.events('FailedScheduling'), [])
    isRejecting = false
    await stage.pass(minutes)
    assert.deepEqual(states(stage, 'discount'), succeeded)
    assert.deepEqual(applied(madeClaims(stage)[0] as NodeClaim), [priceApplied])
  })

  test('they are evaluated every 6 h and when a spec changes, and written only when that is news', async (t) => {
    let writes = 0
    const apiPath = intercepting((method, path) => {
      if (method === 'PATCH' && path.includes('/nodeoverlays/')) writes++
      return 'pass'
    })
    const { stage, cloud } = await openPools(t, { apiPath })
    createOverlay(stage, anOverlay('discount', { priceAdjustment: '-10%' }))
    let listings = 0
    cloud.onListTypes = () => {
      listings++
      return cloud.instanceTypes
    }
    await stage.start()
    await stage.pass(minutes)
    assert.equal(writes, 1)
    const atStart = listings
    await stage.pass(5 * hours)
    assert.equal(listings, atStart)
    await stage.pass(hours)
    assert.equal(listings, atStart + 1)
    stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 5 } })
    await stage.pass(seconds)
    assert.equal(listings, atStart + 2)
    stage.patch(kwokNodeClassKind, 'default', { spec: { nodeRegistrationDelay: '1s' } })
    await stage.pass(seconds)
    assert.equal(listings, atStart + 3)
    stage.patch(karpenterKinds.nodePool, 'default', { metadata: { labels: { team: 'a' } } })
    await stage.pass(seconds)
    assert.equal(listings, atStart + 3)
    assert.equal(writes, 1)
  })
})
