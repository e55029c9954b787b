/** The built-in instance types of the KWOK provider (operations.md 12.3). */
import { type InstanceType, labels, type Offering } from '@tenon/api'
import { instanceTypeOf, is } from './instance-type.ts'

const cpus = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256]
const families = [
  { memoryPerCpu: 2, name: 'c' },
  { memoryPerCpu: 4, name: 's' },
  { memoryPerCpu: 8, name: 'm' },
]
const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c', 'test-zone-d']
const capacityTypes = [
  { name: 'spot', factor: 0.7 },
  { name: 'on-demand', factor: 1 },
]
const gibibyte = 1024 ** 3

/** The 144 types that are offered without a file. */
export function defaultCatalogue(): readonly InstanceType[] {
  return cpus.flatMap((cpu) =>
    families.flatMap((family) =>
      ['linux', 'windows'].flatMap((os) =>
        ['amd64', 'arm64'].map((arch) => instanceType(cpu, family.memoryPerCpu * cpu, family.name, os, arch)),
      ),
    ),
  )
}

function instanceType(cpu: number, memoryGi: number, family: string, os: string, arch: string): InstanceType {
  const memory = memoryGi * gibibyte
  const price = 0.025 * cpu + (0.001 * memory) / 1e9
  return instanceTypeOf({
    name: `${family}-${cpu}x-${arch}-${os}`,
    arch,
    operatingSystems: [os],
    capacity: {
      cpu: cpu * 1000,
      memory,
      pods: Math.min(16 * cpu, 1024),
      'ephemeral-storage': 20 * gibibyte,
    },
    offerings: zones.flatMap((zone) =>
      capacityTypes.map(
        (capacityType): Offering => ({
          requirements: [is(labels.zone, zone), is(labels.capacityType, capacityType.name)],
          pricePerHour: price * capacityType.factor,
          available: true,
        }),
      ),
    ),
  })
}
