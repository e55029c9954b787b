import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Offering, parseResources, wellKnownLabels } from '@tenon/api'
import { parseRequirements } from '../../requirements/requirements.ts'
import { anInput, aPod, aPool, aPoolInput, aType } from '../../testing/builders.test-support.ts'
import { allocatableGroups, allocatableOf, worstLaunchPrice } from './allocatable.ts'
import { schedule } from '../schedule.ts'

const gpu = 'example.com/gpu'

function anOffering(zone: string, capacityType: string, rest: Partial<Offering> = {}): Offering {
  return {
    requirements: [
      { key: labels.zone, operator: 'In', values: [zone] },
      { key: labels.capacityType, operator: 'In', values: [capacityType] },
    ],
    pricePerHour: 1,
    available: true,
    ...rest,
  }
}

function typeWith(
  capacity: Readonly<Record<string, string>>,
  overhead: Partial<InstanceType['overhead']> = {},
  offerings: readonly Offering[] = [],
): InstanceType {
  const type = aType('type', 4, 16)
  return {
    ...type,
    capacity: parseResources(capacity),
    overhead: { ...type.overhead, ...overhead },
    offerings,
  }
}

describe('allocatable', () => {
  test('SCH-143 overhead and huge pages are taken out of the memory, down to nothing', () => {
    const memoryGi = (hugepages: string) =>
      (allocatableOf(
        typeWith(
          { memory: '20Gi', 'hugepages-2Mi': hugepages },
          { kubeReserved: parseResources({ memory: '1Gi' }) },
        ),
      )['memory'] as number) /
      1024 ** 3
    assert.equal(memoryGi('15Gi'), 4)
    assert.equal(memoryGi('25Gi'), 0)
  })

  test('every part of the overhead counts, on resources of the capacity alone', () => {
    const overhead = {
      kubeReserved: { cpu: 100, memory: 10, 'example.com/other': 5 },
      systemReserved: { cpu: 20 },
      evictionThreshold: { memory: 1 },
    }
    assert.deepEqual(allocatableOf(typeWith({ cpu: '1', memory: '100', pods: '10' }, overhead)), {
      cpu: 880,
      memory: 89,
      pods: 10,
    })
  })

  test('available offerings with the same overrides are one group, the one without comes first', () => {
    const withGpu = { capacityOverride: { [gpu]: 2, cpu: 8000 }, overheadOverride: { cpu: 500 } }
    const sameGpu = { overheadOverride: { cpu: 500 }, capacityOverride: { cpu: 8000, [gpu]: 2 } }
    const offerings = [
      anOffering('zone-1', 'spot', withGpu),
      anOffering('zone-2', 'spot', { capacityOverride: { [gpu]: 9 }, available: false }),
      anOffering('zone-3', 'spot', sameGpu),
      anOffering('zone-4', 'spot', { overheadOverride: { cpu: 0 } }),
      anOffering('zone-5', 'spot', { capacityOverride: {} }),
    ]
    const type = typeWith(
      { cpu: '4', memory: '100' },
      { kubeReserved: { cpu: 100 }, systemReserved: { cpu: 100, memory: 10 } },
      offerings,
    )
    assert.deepEqual(allocatableGroups(type), [
      { allocatable: { cpu: 3800, memory: 90 }, offerings: [offerings[4]] },
      { allocatable: { cpu: 7500, memory: 90, [gpu]: 2 }, offerings: [offerings[0], offerings[2]] },
      { allocatable: { cpu: 4000, memory: 90 }, offerings: [offerings[3]] },
    ])
  })

  test('the group without overrides is there even when nothing is sold', () => {
    const type = typeWith({ cpu: '4' }, {}, [anOffering('zone-1', 'spot', { available: false })])
    assert.deepEqual(allocatableGroups(type), [{ allocatable: { cpu: 4000 }, offerings: [] }])
  })

  test('SCH-144 a resource that an override adds is only found where that offering can be had', () => {
    const plain = aType('plain', 4, 16)
    const adding = (name: string, available: boolean): InstanceType => ({
      ...aType(name, 4, 16),
      offerings: [
        ...plain.offerings,
        anOffering('zone-1', 'on-demand', { available, capacityOverride: { [gpu]: 1 } }),
      ],
    })
    const types = [plain, adding('with-gpu', true), adding('sold-out', false)]
    const pod = aPod({ cpu: '1', [gpu]: '1' })
    const { claims, failures } = schedule(anInput({ pods: [pod], pools: [aPoolInput(aPool(), types)] }))
    assert.deepEqual(
      claims.map((claim) => claim.instanceTypes),
      [['with-gpu']],
    )
    assert.deepEqual(failures, [])
  })
})

describe('the worst price of a launch', () => {
  const wellKnown = new Set(wellKnownLabels)
  const type = typeWith({}, {}, [
    anOffering('zone-1', 'on-demand', { pricePerHour: 9 }),
    anOffering('zone-1', 'spot', { pricePerHour: 2 }),
    anOffering('zone-2', 'spot', { pricePerHour: 3 }),
    anOffering('zone-3', 'spot', { pricePerHour: 8, available: false }),
    anOffering('zone-2', 'reserved', { pricePerHour: 0.1 }),
  ])
  const within = (key: string, ...values: readonly string[]) =>
    worstLaunchPrice(type, parseRequirements([{ key, operator: 'In', values }]), wellKnown)

  test('is the highest of the capacity type that is tried first', () => {
    assert.equal(worstLaunchPrice(type, new Map(), wellKnown), 0.1)
    assert.equal(within(labels.zone, 'zone-1'), 2)
    assert.equal(within(labels.capacityType, 'spot', 'on-demand'), 3)
    assert.equal(within(labels.capacityType, 'on-demand'), 9)
  })

  test('is not known when nothing can be bought', () => {
    assert.equal(within(labels.zone, 'zone-3'), undefined)
  })
})
