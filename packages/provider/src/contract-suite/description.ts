import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, isKnownPrice, labels, type Requirement, ownValue } from '@tenon/api'
import type { ContractWorld } from './harness.ts'
import { launched, settled } from './story.ts'

const labelKey = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** The provider's properties, its instance types and its instances (scheduling.md 13.1, 13.2). */
export function examineDescription(open: () => Promise<ContractWorld>): void {
  test('a provider has a name, node classes, and policies that make sense', async () => {
    const { provider, pool } = await open()
    assert.match(provider.name, /^[a-z][-a-z0-9]*$/)
    const [first] = provider.nodeClasses
    assert.ok(first !== undefined, 'the first node class is the default')
    const { group, kind } = pool.spec.template.spec.nodeClassRef
    assert.ok(provider.nodeClasses.some((each) => each.group === group && each.kind === kind))
    const seen = new Set<string>()
    for (const { conditionType, conditionStatus, tolerationMs } of provider.repairPolicies) {
      assert.match(conditionType, /^[A-Z][A-Za-z]+$/)
      assert.ok(
        Number.isFinite(tolerationMs) && tolerationMs > 0,
        `${conditionType} is tolerated for a while`,
      )
      assert.ok(!seen.has(`${conditionType}=${conditionStatus}`), `${conditionType} is told once`)
      seen.add(`${conditionType}=${conditionStatus}`)
    }
    for (const key of provider.wellKnownLabels) assert.match(key, labelKey)
    assert.equal(new Set(provider.wellKnownLabels).size, provider.wellKnownLabels.length)
    const hooks = (provider.registrationHooks ?? []).map(({ name }) => name)
    assert.equal(new Set(hooks).size, hooks.length)
  })

  test('instance types are the same whenever and wherever they are asked for', async () => {
    const world = await open()
    const once = await settled(world, world.provider.getInstanceTypes(world.pool))
    assert.deepEqual(await settled(world, world.provider.getInstanceTypes(world.pool)), once)
    assert.deepEqual(await settled(world, world.startProcess().provider.getInstanceTypes(world.pool)), once)
    assert.ok(once.length > 0)
    assert.equal(new Set(once.map(({ name }) => name)).size, once.length)
  })

  test('every instance type is fully labelled', async () => {
    const world = await open()
    const { provider } = world
    for (const type of await settled(world, provider.getInstanceTypes(world.pool))) {
      assertLabelled(type, provider.wellKnownLabels)
    }
  })

  test('every instance type has resources for pods, and offerings whose price is known or absent', async () => {
    const world = await open()
    for (const { name, capacity, overhead, offerings } of await settled(
      world,
      world.provider.getInstanceTypes(world.pool),
    )) {
      for (const resource of ['cpu', 'memory', 'pods']) {
        const parts = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold]
        const reserved = parts.reduce((sum, part) => sum + (ownValue(part, resource) ?? 0), 0)
        assert.ok((ownValue(capacity, resource) ?? 0) > reserved, `${name} has ${resource} to give`)
      }
      assert.ok(offerings.length > 0, `${name} has offerings`)
      for (const { pricePerHour } of offerings)
        assert.ok(pricePerHour === undefined || isKnownPrice(pricePerHour), `${name} costs ${pricePerHour}`)
    }
  })

  test('types that are sold out are still told, as not available', async () => {
    const world = await open()
    const names = async (): Promise<readonly string[]> =>
      (await settled(world, world.provider.getInstanceTypes(world.pool))).map(({ name }) => name)
    const before = await names()
    if (!(await world.obstruct('soldOut'))) return
    await settled(world, world.provider.create(world.createClaim('one'))).catch(() => undefined)
    assert.deepEqual(await names(), before)
  })

  test('a new instance has not drifted; one that has tells why, each time the same', async () => {
    const world = await open()
    const { claim } = await launched(world, 'one')
    assert.equal(await settled(world, world.provider.isDrifted(claim)), undefined)
    if (!world.causeDrift()) return
    const reason = await settled(world, world.provider.isDrifted(claim))
    assert.match(reason ?? '', /^[A-Z][A-Za-z]+$/)
    assert.equal(await settled(world, world.startProcess().provider.isDrifted(claim)), reason)
  })
}

function assertLabelled({ name, requirements, offerings }: InstanceType, wellKnown: readonly string[]): void {
  const valuesOf = (all: readonly Requirement[], key: string): readonly string[] =>
    all.find((each) => each.key === key && each.operator === 'In')?.values ?? []
  const keys = requirements.map(({ key }) => key)
  assert.equal(new Set(keys).size, keys.length, `${name} states each label once`)
  assert.deepEqual(valuesOf(requirements, labels.instanceType), [name])
  for (const key of [labels.arch, labels.os, labels.zone, labels.capacityType])
    assert.ok(valuesOf(requirements, key).length > 0, `${name} states ${key}`)
  for (const key of wellKnown) assert.ok(keys.includes(key), `${name} states ${key}`)
  for (const key of [labels.zone, labels.capacityType]) {
    const offered = offerings.map((offering) => valuesOf(offering.requirements, key))
    for (const values of offered) assert.equal(values.length, 1, `an offering of ${name} has one ${key}`)
    assert.deepEqual(new Set(offered.flat()), new Set(valuesOf(requirements, key)), `${name}: ${key}`)
  }
}
