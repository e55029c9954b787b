/** Catalogues of the workloads: `fake(400)`, and NodePools with a catalogue. */
import { type InstanceType, labels, type NodePool, type Requirement } from '@tenon/api'
import type { PoolInput } from '@tenon/engine'

const gibibyte = 1024 ** 3
const zones = ['test-zone-1', 'test-zone-2', 'test-zone-3']

/** A requirement for one of `values`. */
export const oneOf = (key: string, ...values: readonly string[]): Requirement => ({
  key,
  operator: 'In',
  values,
})

/** `fake-it-0` to `fake-it-399`: each with one core, 2 GiB and 10 pods more, priced by size. */
export function fakeCatalogue(): readonly InstanceType[] {
  const offers = [
    ...zones.slice(0, 2).map((zone) => [zone, 'spot'] as const),
    ...zones.map((zone) => [zone, 'on-demand'] as const),
  ]
  return Array.from({ length: 400 }, (_, i) => {
    const cpu = i + 1
    const memory = 2 * cpu * gibibyte
    const pricePerHour = 0.1 * cpu + (0.1 * memory) / 1e9
    return {
      name: `fake-it-${i}`,
      requirements: [
        oneOf(labels.instanceType, `fake-it-${i}`),
        oneOf(labels.arch, 'amd64'),
        oneOf(labels.os, 'linux', 'windows', 'darwin'),
        oneOf(labels.zone, ...zones),
        oneOf(labels.capacityType, 'spot', 'on-demand'),
      ],
      offerings: offers.map(([zone, capacityType]) => ({
        requirements: [oneOf(labels.zone, zone), oneOf(labels.capacityType, capacityType)],
        pricePerHour,
        available: true,
      })),
      capacity: { cpu: cpu * 1000, memory, pods: 10 * cpu },
      overhead: {
        kubeReserved: { cpu: 100, memory: 10 * 1024 ** 2 },
        systemReserved: {},
        evictionThreshold: {},
      },
    }
  })
}

/** A NodePool without limits that launches `instanceTypes`. */
export function pool(
  name: string,
  instanceTypes: readonly InstanceType[],
  template: Partial<NodePool['spec']['template']['spec']> = {},
  weight = 0,
): PoolInput {
  return {
    nodePool: {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name, uid: `pool-${name}` },
      spec: {
        weight,
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
            requirements: [],
            ...template,
          },
        },
      },
    },
    instanceTypes,
    usage: {},
  }
}
