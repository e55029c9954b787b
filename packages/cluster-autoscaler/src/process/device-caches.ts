/** Devices of nodes and the claims that hold them (cluster-autoscaler.md 6.2). */
import { kinds, type ResourceType } from '@tenon/api'
import type { CacheRegistry, ReadFields } from '@tenon/kube'
import { type DeviceUse, deviceUse } from '../scale-down/nodes/device-use.ts'

/** Without them no node is judged by its devices. */
export const deviceKinds = [kinds.resourceSlice, kinds.resourceClaim] as const

/** Of slices, which devices they have; what these can do is much and does not matter. */
const sliceFields: ReadFields = {
  members: {
    metadata: { members: { managedFields: false }, others: true },
    spec: {
      members: { devices: { members: { name: true }, others: false } },
      others: true,
    },
  },
  others: true,
}

/** Follows both kinds if both can be read. @returns what is in use now, by node. */
export function followDevices(
  registry: CacheRegistry,
  readable: ReadonlySet<ResourceType>,
): () => ReadonlyMap<string, DeviceUse> {
  if (!deviceKinds.every((kind) => readable.has(kind))) return () => new Map()
  const slices = registry.cache(kinds.resourceSlice, { fields: sliceFields })
  const claims = registry.cache(kinds.resourceClaim)
  return () => deviceUse(slices.list(), claims.list())
}
