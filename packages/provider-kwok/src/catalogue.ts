/** The instance types of the simulated provider (operations.md 12.2, 12.3). */
import { type InstanceType, labels, type Offering, type Requirement } from '@tenon/api'

/** Labels that KWOK instance types add. */
export const kwokLabels = {
  size: 'karpenter.kwok.sh/instance-size',
  family: 'karpenter.kwok.sh/instance-family',
  cpu: 'karpenter.kwok.sh/instance-cpu',
  memory: 'karpenter.kwok.sh/instance-memory',
} as const

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

/** The 144 types offered when no file gives others. */
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
  const name = `${family}-${cpu}x-${arch}-${os}`
  const memory = memoryGi * gibibyte
  const price = 0.025 * cpu + (0.001 * memory) / 1e9
  const is = (key: string, ...values: string[]): Requirement => ({ key, operator: 'In', values })
  const offerings = zones.flatMap((zone) =>
    capacityTypes.map(
      (capacityType): Offering => ({
        requirements: [is(labels.zone, zone), is(labels.capacityType, capacityType.name)],
        pricePerHour: price * capacityType.factor,
        available: true,
      }),
    ),
  )
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, arch),
      is(labels.os, os),
      is(labels.zone, ...zones),
      is(labels.capacityType, ...capacityTypes.map((type) => type.name)),
      is(kwokLabels.size, String(cpu)),
      is(kwokLabels.family, family),
      is(kwokLabels.cpu, String(cpu)),
      is(kwokLabels.memory, `${memoryGi}Gi`),
    ],
    offerings,
    capacity: {
      cpu: cpu * 1000,
      memory,
      pods: Math.min(16 * cpu, 1024),
      'ephemeral-storage': 20 * gibibyte,
    },
    overhead: {
      kubeReserved: { cpu: 100, memory: 10 * 1024 ** 2 },
      systemReserved: {},
      evictionThreshold: {},
    },
  }
}
