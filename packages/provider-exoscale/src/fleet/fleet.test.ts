import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import { idOf } from '../testing/fake-cloud.test-support.ts'
import { aClaim, aNodeClass, aWorld, type World } from '../testing/world.test-support.ts'

const minute = 60_000

async function launched(name = 'pool-abcde'): Promise<{ world: World; claim: NodeClaim; id: string }> {
  const world = aWorld()
  world.kube.put(exoscaleNodeClassKind, aNodeClass())
  const { providerID } = await world.settle(world.provider.create(aClaim(name)))
  const claim = world.kube.put(karpenterKinds.nodeClaim, { ...aClaim(name), status: { providerID } })
  return { world, claim, id: providerID.slice('exoscale://'.length) }
}

describe('get, list, delete', () => {
  it('EXO-80 bad provider IDs are refused', async () => {
    const { provider, settle } = aWorld()
    const upper = 'exoscale://0B12CB6B-7E3E-4C0E-9E10-1E5D8A7C4B2A'
    for (const id of ['aws://x', 'exoscale://', upper, 'exoscale://nope']) {
      await assert.rejects(settle(provider.get(id)), { kind: 'other' })
    }
  })

  it('EXO-81 a missing instance is not found', async () => {
    const { provider, settle } = aWorld()
    const missing = 'exoscale://99999999-0000-4000-8000-000000000000'
    await assert.rejects(settle(provider.get(missing)), { kind: 'nodeClaimNotFound' })
  })

  it('EXO-82 EXO-98 only instances of this cluster are listed', async () => {
    const { world, id } = await launched()
    const mine = world.cloud.instances.get(id)
    assert.ok(mine)
    world.cloud.instances.set(idOf(1), {
      ...mine,
      id: idOf(1),
      labels: { ...mine.labels, 'exoscale.com/cluster-id': 'other' },
    })
    world.cloud.instances.set(idOf(2), { ...mine, id: idOf(2), labels: {} })
    const instances = await world.settle(world.provider.list())
    assert.deepEqual(
      instances.map((instance) => instance.providerID),
      [`exoscale://${id}`],
    )
    assert.equal(instances[0]?.nodeClaimName, 'pool-abcde')
  })

  it('EXO-83 an instance that vanishes during the list spoils nothing', async () => {
    const { world } = await launched()
    world.cloud.disturb('GET', /^\/instance\/./, { status: 404 })
    assert.deepEqual(await world.settle(world.provider.list()), [])
  })

  it('EXO-135 an instance of an unknown type is listed with the others', async () => {
    const { world, id } = await launched()
    const mine = world.cloud.instances.get(id)
    assert.ok(mine)
    world.cloud.instances.set(idOf(1), { ...mine, id: idOf(1), 'instance-type': { id: idOf(9) } })
    const instances = await world.settle(world.provider.list())
    assert.equal(instances.length, 2)
    assert.doesNotMatch(JSON.stringify(instances), /"\."/)
  })

  it('EXO-84 EXO-85 deletion is accepted, then the instance is gone', async () => {
    const { world, claim } = await launched()
    await world.settle(world.provider.delete(claim))
    assert.deepEqual(
      (await world.settle(world.provider.list())).map(({ deleting }) => deleting),
      [true],
    )
    await assert.rejects(world.settle(world.provider.delete(claim)), { kind: 'nodeClaimNotFound' })
    await assert.rejects(world.settle(world.provider.delete(claim)), { kind: 'nodeClaimNotFound' })
  })

  it('EXO-134 a failed deletion is told and tried again', async () => {
    const { world, claim } = await launched()
    world.cloud.deletionFailures = ['busy']
    await world.settle(world.provider.delete(claim))
    await assert.rejects(world.settle(world.provider.delete(claim)), { kind: 'other', message: /busy/ })
    await world.settle(world.provider.delete(claim))
    await assert.rejects(world.settle(world.provider.delete(claim)), { kind: 'nodeClaimNotFound' })
  })

  it('a claim whose launch was cut off is deleted by its label', async () => {
    const { world, claim } = await launched()
    const { status: _status, ...cutOff } = claim
    await world.settle(world.provider.delete(cutOff))
    assert.equal([...world.cloud.instances.values()][0]?.state, 'destroying')
  })
})

describe('garbage collection', () => {
  const collect = (world: World) => world.reconcile('exoscale.garbagecollection', 'all')
  const states = (world: World) => [...world.cloud.instances.values()].map((instance) => instance.state)

  it('EXO-96 EXO-97 ADO-15 an instance without a claim goes after ten minutes of notice', async () => {
    const { world } = await launched()
    await world.kube.delete(karpenterKinds.nodeClaim, { name: 'pool-abcde' })
    await collect(world)
    assert.deepEqual(states(world), ['running'])
    await world.clock.advance(6 * minute)
    await collect(world)
    await world.clock.advance(9 * minute)
    await collect(world)
    assert.deepEqual(states(world), ['running'])
    await world.clock.advance(minute)
    await collect(world)
    assert.deepEqual(states(world), ['destroying'])
  })

  it('an instance whose claim is still being launched stays', async () => {
    const { world } = await launched()
    world.kube.put(karpenterKinds.nodeClaim, aClaim())
    await world.clock.advance(60 * minute)
    await collect(world)
    assert.deepEqual(states(world), ['running'])
  })

  it('EXO-101 an instance that is gone already does not end the pass', async () => {
    const { world, id } = await launched()
    await world.kube.delete(karpenterKinds.nodeClaim, { name: 'pool-abcde' })
    const mine = world.cloud.instances.get(id)
    assert.ok(mine)
    world.cloud.instances.set(idOf(1), { ...mine, id: idOf(1) })
    for (let i = 2; i < 12; i++) {
      world.cloud.instances.set(idOf(i), { ...mine, id: idOf(i) })
      const status = { providerID: `exoscale://${idOf(i)}` }
      world.kube.put(karpenterKinds.nodeClaim, { ...aClaim(), metadata: { name: `pool-${i}` }, status })
    }
    await world.clock.advance(6 * minute)
    await collect(world)
    await world.clock.advance(10 * minute)
    world.cloud.disturb('DELETE', /./, { status: 404 })
    await collect(world)
    assert.ok(states(world).includes('destroying'))
  })

  it('EXO-99 EXO-100 a claim stuck for ten minutes without an instance is released, no other', async () => {
    const { world, claim } = await launched()
    const stuck = (ageMs: number, finalizers: string[]) =>
      world.kube.put(karpenterKinds.nodeClaim, {
        ...claim,
        metadata: { ...claim.metadata, finalizers, deletionTimestamp: rfc3339(world.clock.now() - ageMs) },
      })
    const finalizers = ['karpenter.sh/termination', 'other/one']
    const left = () => world.kube.all(karpenterKinds.nodeClaim)[0]?.metadata.finalizers
    stuck(11 * minute, finalizers)
    await collect(world)
    assert.deepEqual(left(), finalizers)
    world.cloud.instances.clear()
    stuck(9 * minute, finalizers)
    await collect(world)
    assert.deepEqual(left(), finalizers)
    stuck(11 * minute, finalizers)
    await collect(world)
    assert.deepEqual(left(), ['other/one'])
  })
})
