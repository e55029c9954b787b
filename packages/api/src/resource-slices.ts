/** The ResourceSlices that a simulated driver publishes for a node (devices.md 3.2, 3.20). */
import type { KubeObject } from './objects.ts'
import type { Device, ResourceSlice, ResourceSliceTemplate } from './devices.ts'

/** Limit of the API server. */
const devicesPerSlice = 128
/** Limit of the API server for devices with taints, counters or lists. */
const advancedDevicesPerSlice = 64
const countersPerSlice = 8

/**
 * Builds the slices of a node from templates, at generation 1. Each driver and pool name has one pool, owned by
 * the Node.
 */
export function slicesOf(
  templates: readonly ResourceSliceTemplate[],
  { metadata: { name: nodeName, uid = '' } }: KubeObject,
): readonly ResourceSlice[] {
  const pools = Map.groupBy(templates, ({ driver, pool }) => `${driver}\n${pool}`)
  return [...pools.values()].flatMap((members) => {
    const { driver, pool } = members[0] ?? { driver: '', pool: '' }
    const devices = members.flatMap((member) => member.devices)
    const counters = members.flatMap(({ sharedCounters = [] }) => sharedCounters)
    const most = devices.some(isAdvanced) ? advancedDevicesPerSlice : devicesPerSlice
    const parts = [
      ...chunks(counters, countersPerSlice).map((sharedCounters) => ({ sharedCounters })),
      ...chunks(devices, most).map((some) => ({ devices: some })),
    ]
    return parts.map(
      (part, at): ResourceSlice => ({
        apiVersion: 'resource.k8s.io/v1',
        kind: 'ResourceSlice',
        metadata: {
          name: [nodeName, driver, pool, String(at)].join('-').replace(/[^a-z0-9.-]/g, '-'),
          ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid, controller: true }],
        },
        spec: {
          driver,
          pool: { name: `${nodeName}/${pool}`, generation: 1, resourceSliceCount: parts.length },
          nodeName,
          ...part,
        },
      }),
    )
  })
}

function isAdvanced({ taints = [], consumesCounters = [], attributes = {} }: Device): boolean {
  const lists = ['ints', 'bools', 'strings', 'versions'] as const
  return (
    taints.length > 0 ||
    consumesCounters.length > 0 ||
    Object.values(attributes).some((value) => lists.some((list) => value[list] !== undefined))
  )
}

function chunks<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) =>
    items.slice(at * size, (at + 1) * size),
  )
}
