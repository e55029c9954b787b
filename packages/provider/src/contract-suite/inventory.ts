import { ownValue } from '@tenon/api'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContractWorld } from './harness.ts'
import {
  assertRejects,
  deletedAtLast,
  endedOrDead,
  launched,
  listedIDs,
  rejection,
  settled,
} from './story.ts'

/** More instances than fit on any page of a cloud's API. */
const many = 40

/** `get`, `list` and `delete` (scheduling.md 13.2, lifecycle.md 3.7). */
export function examineInventory(open: () => Promise<ContractWorld>): void {
  test('an instance is read as it was launched', async () => {
    const world = await open()
    const { instance } = await launched(world, 'one')
    const read = await settled(world, world.provider.get(instance.providerID))
    assert.equal(read.providerID, instance.providerID)
    assert.equal(read.deleting, false)
    for (const [key, value] of Object.entries(instance.labels))
      assert.equal(ownValue(read.labels, key), value, key)
  })

  test('an instance that does not exist is not found', async () => {
    const world = await open()
    await assertRejects(world, world.provider.get(world.unknownProviderID), 'nodeClaimNotFound')
    const claim = world.storeClaim({
      ...world.createClaim('one'),
      status: { providerID: world.unknownProviderID },
    })
    await assertRejects(world, world.provider.delete(claim), 'nodeClaimNotFound')
  })

  test('a provider ID of another form is refused, and nothing is deleted for it', async () => {
    const world = await open()
    const { instance } = await launched(world, 'one')
    for (const [index, providerID] of world.malformedProviderIDs(instance.providerID).entries()) {
      await assertRejects(world, world.provider.get(providerID), 'nodeClaimNotFound', 'other')
      const claim = world.storeClaim({ ...world.createClaim(`other-${index}`), status: { providerID } })
      await assertRejects(world, world.provider.delete(claim), 'nodeClaimNotFound')
      assert.equal(world.provider.ownsProviderID(providerID), false, providerID)
    }
    assert.deepEqual(world.instancesOf('one'), [instance.providerID])
    assert.equal(world.provider.ownsProviderID(instance.providerID), true)
  })

  test('RPT-37 an instance whose claim has a provider ID of another form goes by its labels', async () => {
    const world = await open()
    const { instance } = await launched(world, 'one')
    const [providerID = ''] = world.malformedProviderIDs(instance.providerID)
    const claim = world.storeClaim({ ...world.createClaim('one'), status: { providerID } })
    await deletedAtLast(world, claim)
    assert.deepEqual(world.instancesOf('one'), [])
  })

  test('the list is complete, tells the claim of each instance, and shows no instance of others', async () => {
    const world = await open()
    const foreign = world.addForeignInstance()
    const expected = new Map<string, string>()
    const names = Array.from({ length: many }, (_, index) => `claim-${index}`)
    await Promise.all(
      names.map(async (name) => expected.set((await launched(world, name)).instance.providerID, name)),
    )
    const instances = await settled(world, world.startProcess().provider.list())
    assert.deepEqual(
      new Map(instances.map(({ providerID, nodeClaimName }) => [providerID, nodeClaimName])),
      expected,
    )
    assert.equal(instances.length, many)
    assert.ok(!expected.has(foreign))
    for (const { createdAtMs, deleting } of instances) {
      assert.equal(deleting, false)
      assert.ok(createdAtMs !== undefined && Number.isFinite(createdAtMs), 'a sweep has to know the age')
    }
  })

  test('an instance whose launch was cut off is listed with its claim', async () => {
    for (let atWrite = 1; ; atWrite++) {
      const world = await open()
      const dying = world.startProcess({ atWrite, when: 'after' })
      const isDead = await endedOrDead(world, dying, dying.provider.create(world.createClaim('one')))
      if (!isDead) return
      const [instance] = world.instancesOf('one')
      const listed = await settled(world, world.startProcess().provider.list())
      assert.deepEqual(
        listed.map(({ providerID, nodeClaimName }) => [providerID, nodeClaimName]),
        instance === undefined ? [] : [[instance, 'one']],
      )
    }
  })

  test('a deletion is told as accepted or done, and once more as done; other instances stay', async () => {
    const world = await open()
    const { claim, instance } = await launched(world, 'one')
    const other = await launched(world, 'two')
    const first = await rejection(world, world.provider.delete(claim))
    if (first !== undefined) assert.equal(first.kind, 'nodeClaimNotFound')
    await deletedAtLast(world, claim)
    await assertRejects(world, world.provider.delete(claim), 'nodeClaimNotFound')
    await assertRejects(world, world.provider.get(instance.providerID), 'nodeClaimNotFound')
    assert.deepEqual(world.instancesOf('one'), [])
    assert.deepEqual(await listedIDs(world), [other.instance.providerID])
  })

  test('an instance that is being deleted is not taken for a living one', async () => {
    const world = await open()
    const { claim, instance } = await launched(world, 'one')
    await rejection(world, world.provider.delete(claim))
    const listed = await settled(world, world.provider.list())
    for (const { providerID, deleting } of listed)
      if (providerID === instance.providerID) assert.equal(deleting, true)
    const read = await settled(world, world.provider.get(instance.providerID)).catch(() => undefined)
    if (read !== undefined) assert.equal(read.deleting, true)
  })

  for (const when of ['before', 'after'] as const) {
    test(`a process that dies ${when} any write of a deletion leaves it to the next one`, async () => {
      for (let atWrite = 1; ; atWrite++) {
        const world = await open()
        const { claim } = await launched(world, 'one')
        const dying = world.startProcess({ atWrite, when })
        const isDead = await endedOrDead(world, dying, dying.provider.delete(claim))
        if (!isDead) {
          assert.ok(atWrite > 1, 'a deletion writes something')
          return
        }
        await deletedAtLast(world, claim, world.startProcess().provider)
        assert.deepEqual(world.instancesOf('one'), [], `death ${when} write ${atWrite}`)
      }
    })
  }
}
