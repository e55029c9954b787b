/** What a simulated driver publishes for a node (devices.md 3.2, 3.20). */
import type { KubeObject } from './objects.ts'
import type { ResourceSlice, ResourceSliceTemplate } from './devices.ts'

/** The API server takes no slice with more. */
const devicesPerSlice = 128

/** Slices with the devices of the templates, of generation 1: one pool for each driver and pool name, which the Node owns. */
export function slicesOf(
  templates: readonly ResourceSliceTemplate[],
  { metadata: { name: nodeName, uid = '' } }: KubeObject,
): readonly ResourceSlice[] {
  const pools = Map.groupBy(templates, ({ driver, pool }) => `${driver}\n${pool}`)
  return [...pools.values()].flatMap((members) => {
    const { driver, pool } = members[0] ?? { driver: '', pool: '' }
    const devices = members.flatMap((member) => member.devices)
    const counters = members.flatMap(({ sharedCounters = [] }) => sharedCounters)
    const chunks = Array.from({ length: Math.ceil(devices.length / devicesPerSlice) }, (_, at) => ({
      devices: devices.slice(at * devicesPerSlice, (at + 1) * devicesPerSlice),
    }))
    const parts = [...(counters.length > 0 ? [{ sharedCounters: counters }] : []), ...chunks]
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
