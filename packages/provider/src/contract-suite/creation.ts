import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitsValue, labels, normalizedLabel, ownValue } from '@tenon/api'
import type { ContractWorld } from './harness.ts'
import { endedOrDead, launched, launchedAtLast, listedIDs, rejection, settled } from './story.ts'

/** `create` (scheduling.md 13.2): its result, and that it never creates a second instance. */
export function examineCreation(open: () => Promise<ContractWorld>): void {
  test('a launch answers an instance that the claim asks for', async () => {
    const world = await open()
    const { claim, instance } = await launched(world, 'one')
    assert.notEqual(instance.providerID, '')
    assert.equal(instance.deleting, false)
    for (const key of [labels.instanceType, labels.zone, labels.capacityType, labels.arch, labels.os])
      assert.ok(instance.labels[key], `label ${key} is told`)
    for (const requirement of claim.spec.requirements) {
      const value = ownValue(instance.labels, normalizedLabel(requirement.key))
      if (value !== undefined) assert.ok(admitsValue(requirement, value), `${requirement.key}=${value}`)
    }
    const types = await settled(world, world.provider.getInstanceTypes(world.pool))
    assert.ok(types.some(({ name }) => name === instance.labels[labels.instanceType]))
    for (const list of [instance.capacity, instance.allocatable])
      for (const [resource, quantity] of Object.entries(list))
        assert.ok(Number.parseFloat(quantity) > 0, `${resource} is ${quantity}; zero entries are left out`)
  })

  test('a launch that is repeated answers the same instance', async () => {
    const world = await open()
    const { claim, instance } = await launched(world, 'one')
    const again = await settled(world, world.provider.create(claim))
    const { createdAtMs: _first, ...expected } = instance
    const { createdAtMs: _again, ...actual } = again
    assert.deepEqual(actual, expected)
    assert.deepEqual(world.instancesOf('one'), [instance.providerID])
  })

  test('each claim gets an instance of its own', async () => {
    const world = await open()
    const names = ['one', 'two', 'three']
    const ids = await Promise.all(
      names.map(async (name) => (await launched(world, name)).instance.providerID),
    )
    assert.equal(new Set(ids).size, 3)
    for (const [index, name] of names.entries()) assert.deepEqual(world.instancesOf(name), [ids[index]])
  })

  for (const when of ['before', 'after'] as const) {
    test(`a process that dies ${when} any write of a launch leaves no second instance behind`, async () => {
      for (let atWrite = 1; ; atWrite++) {
        const world = await open()
        const claim = world.createClaim('one')
        const dying = world.startProcess({ atWrite, when })
        const isDead = await endedOrDead(world, dying, dying.provider.create(claim))
        if (!isDead) {
          assert.ok(atWrite > 1, 'a launch writes something')
          return
        }
        const story = `death ${when} write ${atWrite}`
        const { provider } = world.startProcess()
        const { providerID } = await launchedAtLast(world, claim, provider)
        assert.deepEqual(world.instancesOf('one'), [providerID], story)
        assert.deepEqual(await listedIDs(world), [providerID], story)
      }
    })
  }

  test('a creation whose answer is lost is found again by the process that asked for it', async () => {
    const world = await open()
    const claim = world.createClaim('one')
    world.loseNextAnswer()
    const { providerID } = await launchedAtLast(world, claim)
    assert.deepEqual(world.instancesOf('one'), [providerID])
  })

  test('a claim keeps its instance when nothing that fits is to be had any more', async () => {
    const world = await open()
    const { claim, instance } = await launched(world, 'one')
    if (!(await world.obstruct('soldOut'))) return
    const { provider } = world.startProcess()
    assert.equal((await settled(world, provider.create(claim))).providerID, instance.providerID)
  })

  for (const [obstacle, kinds] of [
    ['nodeClassMissing', ['insufficientCapacity']],
    ['nodeClassNotReady', ['nodeClassNotReady']],
    ['soldOut', ['insufficientCapacity']],
    ['refused', ['create', 'other']],
    ['throttled', ['throttled']],
  ] as const) {
    test(`a launch that fails because of ${obstacle} says so, and leaves no instance`, async () => {
      const world = await open()
      const claim = world.createClaim('one')
      if (!(await world.obstruct(obstacle))) return
      const error = await rejection(world, world.provider.create(claim))
      assert.ok(error !== undefined, 'it is rejected')
      assert.ok((kinds as readonly string[]).includes(error.kind), `${error.kind}: ${error.message}`)
      assert.notEqual(error.detail, '')
      if (error.kind === 'create') assert.match(error.reason ?? '', /^[A-Z][A-Za-z]+$/)
      assert.deepEqual(world.instancesOf('one'), [])
    })
  }
}
