/** Random instance types for property tests. */
import {
  type InstanceType,
  labels as names,
  type Offering,
  parseResources,
  type Requirement,
} from '@tenon/api'
import * as fc from 'fast-check'
import {
  coresLabel,
  families,
  familyLabel,
  present,
  type Profile,
  reservationLabel,
  seldom,
  zones,
} from './arbitrary-pods.test-support.ts'

const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
const is = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })

function instanceType(index: number, profile: Profile): fc.Arbitrary<InstanceType> {
  const offering = fc.record({
    zone: pick(...zones),
    capacityType: profile.volumes
      ? pick('on-demand', 'on-demand', 'spot', 'reserved')
      : pick('on-demand', 'on-demand', 'spot'),
    override: profile.volumes
      ? seldom(pick({ capacityOverride: { 'example.com/gpu': 2 } }, { overheadOverride: { cpu: 500 } }), 8)
      : fc.constant(undefined),
    cents: fc.integer({ min: 1, max: 60 }),
    available: pick(true, true, true, false),
  })
  return fc
    .record({
      cpu: pick(1, 2, 4, 8),
      memoryPerCore: pick(1, 2, 4),
      family: pick(...families),
      arch: pick('amd64', 'amd64', 'amd64', 'arm64'),
      pods: pick('110', '110', '110', '3', '8'),
      gpu: seldom(pick('1', '4'), 4),
      hugepages: seldom(pick('64Mi', '512Mi'), 8),
      overhead: pick('0', '100m'),
      offerings: fc.uniqueArray(offering, {
        minLength: 1,
        maxLength: 5,
        selector: (each) => `${each.zone} ${each.capacityType}`,
      }),
    })
    .map((each) => {
      const listed = (field: 'zone' | 'capacityType') => [...new Set(each.offerings.map((one) => one[field]))]
      const quantities = {
        cpu: String(each.cpu),
        memory: `${each.cpu * each.memoryPerCore}Gi`,
        pods: each.pods,
        'ephemeral-storage': '50Gi',
        'example.com/gpu': each.gpu,
        'hugepages-2Mi': each.hugepages,
      }
      return {
        name: `type-${index}`,
        requirements: [
          is(names.instanceType, `type-${index}`),
          is(names.arch, each.arch),
          is(names.os, 'linux'),
          is(names.zone, ...listed('zone')),
          is(names.capacityType, ...listed('capacityType')),
          is(familyLabel, each.family),
          is(coresLabel, String(each.cpu)),
        ],
        offerings: each.offerings.map(
          ({ zone, capacityType, cents, available, override }): Offering => ({
            requirements: [
              is(names.zone, zone),
              is(names.capacityType, capacityType),
              ...(profile.volumes ? [reservation(capacityType, zone)] : []),
            ],
            pricePerHour: (cents * each.cpu) / 100,
            available,
            ...(capacityType === 'reserved' && { reservationCapacity: instancesReserved[zone] ?? 1 }),
            ...override,
          }),
        ),
        capacity: parseResources(present<Record<string, string>>(quantities)),
        overhead: {
          kubeReserved: parseResources({ cpu: each.overhead }),
          systemReserved: parseResources({ memory: '64Mi' }),
          evictionThreshold: parseResources({ memory: '100Mi' }),
        },
      }
    })
}

/** Instances left in the one reservation of each zone, which all types share. */
const instancesReserved: Readonly<Record<string, number>> = { 'zone-1': 1, 'zone-2': 2, 'zone-3': 3 }

const reservation = (capacityType: string, zone: string): Requirement =>
  capacityType === 'reserved'
    ? is(reservationLabel, `reservation-${zone}`)
    : { key: reservationLabel, operator: 'DoesNotExist' }

/** The types of one provider. */
export const catalogue = (profile: Profile): fc.Arbitrary<readonly InstanceType[]> =>
  fc
    .integer({ min: 1, max: 12 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => instanceType(index, profile))))
