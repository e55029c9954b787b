import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { InstanceType } from '@tenon/api'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import { templateId } from '../testing/fake-cloud.test-support.ts'
import { aNodeClass, aPool, aWorld, type World } from '../testing/world.test-support.ts'
import { readGpuDevices } from '../options.ts'
import { reservedResources } from './instance-types.ts'

async function typesOf(
  world: World,
  spec?: Parameters<typeof aNodeClass>[0],
): Promise<Map<string, InstanceType>> {
  world.kube.put(exoscaleNodeClassKind, aNodeClass(spec))
  const types = await world.settle(world.provider.getInstanceTypes(aPool()))
  return new Map(types.map((type) => [type.name, type]))
}

const requirement = (type: InstanceType | undefined, key: string) =>
  type?.requirements.find((candidate) => candidate.key === key)

describe('instance types', () => {
  it('EXO-35 EXO-36 unauthorised types and those of other zones are not offered', async () => {
    const world = aWorld()
    const { authorized: _authorized, ...unsaid } = world.cloud.types[0] as never as Record<string, unknown>
    world.cloud.types = [
      unsaid as never,
      { ...world.cloud.types[1], authorized: false } as never,
      { ...world.cloud.types[2], zones: ['de-fra-1'] } as never,
      ...world.cloud.types.slice(3),
    ]
    const types = await typesOf(world)
    for (const name of ['standard.small', 'standard.medium', 'standard.large'])
      assert.equal(types.has(name), false)
    assert.ok(types.has('cpu.extra-large'))
  })

  it('EXO-37 GPU count and requirements, only where there are GPUs', async () => {
    const types = await typesOf(aWorld())
    const gpu = types.get('gpurtx6000pro.small')
    assert.equal(gpu?.capacity['nvidia.com/gpu'], 2)
    assert.deepEqual(requirement(gpu, 'karpenter.sh/instance-accelerator')?.values, ['nvidia'])
    const plain = types.get('standard.small')
    assert.equal('nvidia.com/gpu' in (plain?.capacity ?? {}), false)
    assert.equal(requirement(plain, 'karpenter.sh/instance-accelerator')?.operator, 'DoesNotExist')
  })

  it('types with GPUs tell of the devices that their driver will publish, where it runs', async () => {
    assert.ok([...(await typesOf(aWorld())).values()].every((type) => !('resourceSliceTemplates' in type)))
    const types = await typesOf(aWorld({ EXOSCALE_GPU_DEVICES: 'nvidia' }))
    assert.equal('resourceSliceTemplates' in (types.get('standard.small') ?? {}), false)
    const [template, ...others] = types.get('gpurtx6000pro.small')?.resourceSliceTemplates ?? []
    assert.deepEqual(others, [])
    assert.equal(template?.driver, 'gpu.nvidia.com')
    assert.deepEqual(
      template.devices.map(({ name, attributes, capacity }) => [
        name,
        attributes?.['architecture'],
        capacity?.['memory']?.value,
      ]),
      ['gpu-0', 'gpu-1'].map((name) => [name, { string: 'Blackwell' }, '97250Mi']),
    )
    const unknown = { EXOSCALE_ZONE: 'ch-gva-2', EXOSCALE_GPU_DEVICES: 'amd' }
    assert.match(
      String(Object.values(readGpuDevices(unknown))),
      /EXOSCALE_GPU_DEVICES is "amd": set it to nvidia/,
    )
  })

  it('EXO-38 EXO-39 pods are 110 and storage follows the class', async () => {
    const types = await typesOf(aWorld(), { templateID: templateId, diskSize: 100 })
    for (const type of types.values()) {
      assert.equal(type.capacity.pods, 110)
      assert.equal(type.capacity['ephemeral-storage'], 107_374_182_400)
    }
  })

  it('EXO-40 blank reservations count as nothing', () => {
    assert.deepEqual(reservedResources({ cpu: '500m', memory: '', ephemeralStorage: '' }), {
      cpu: 500,
      memory: 0,
      'ephemeral-storage': 0,
    })
  })

  it('EXO-41 results share no objects', async () => {
    const world = aWorld()
    const first = (await typesOf(world)).get('standard.small')
    const second = (await typesOf(world)).get('standard.small')
    assert.notEqual(first?.capacity, second?.capacity)
    assert.notEqual(first?.requirements, second?.requirements)
    assert.notEqual(first?.requirements[0], second?.requirements[0])
  })

  it('EXO-43 a type without a price is offered', async () => {
    const type = (await typesOf(aWorld())).get('gpurtx6000pro.small')
    assert.deepEqual(
      type?.offerings.map(({ available, pricePerHour }) => [available, pricePerHour]),
      [[true, undefined]],
    )
  })

  it('EXO-140 a type that cannot have the disk is not offered', async () => {
    assert.equal((await typesOf(aWorld())).has('storage.extra-large'), false)
    const roomy = await typesOf(aWorld(), { templateID: templateId, diskSize: 1000 })
    assert.ok(roomy.has('storage.extra-large'))
    assert.equal(roomy.has('standard.small'), false)
  })

  it('types and offerings name their zone, and allocatable is right for standard.medium', async () => {
    const type = (await typesOf(aWorld())).get('standard.medium')
    assert.deepEqual(requirement(type, 'topology.kubernetes.io/zone')?.values, ['ch-gva-2'])
    assert.ok(type?.offerings[0]?.requirements.some(({ key }) => key === 'topology.kubernetes.io/zone'))
    assert.deepEqual(type?.overhead.kubeReserved, {
      cpu: 200,
      memory: 300 * 2 ** 20,
      'ephemeral-storage': 2 ** 30,
    })
  })

  it('types are made once until something changes that shapes them', async () => {
    const world = aWorld()
    const asked = () => world.settle(world.provider.getInstanceTypes(aPool()))
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    const first = await asked()
    assert.equal(await asked(), first)
    world.kube.put(exoscaleNodeClassKind, aNodeClass({ templateID: templateId, diskSize: 100 }))
    const roomy = await asked()
    assert.notDeepEqual(roomy, first)
    assert.equal(await asked(), roomy)
    await world.clock.advance(7 * 3_600_000)
    assert.notEqual(await asked(), roomy)
  })

  it('types are read again after hours, and kept when that fails', async () => {
    const world = aWorld()
    await typesOf(world)
    world.cloud.types = world.cloud.types.slice(0, 1)
    await world.clock.advance(7 * 3_600_000)
    world.cloud.disturb('GET', /instance-type/, { status: 400 })
    assert.ok((await typesOf(world)).size > 1)
    for (let minutes = 2; minutes <= 12; minutes += 2) {
      await world.clock.advance(2 * 60_000)
      assert.equal((await typesOf(world)).size === 1, minutes === 12, `${minutes} min`)
    }
  })
})
