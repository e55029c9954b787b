/** Devices of nodes and the claims that use them (cluster-autoscaler.md 6.2). */
import { kinds, type ResourceType } from '@tenon/api'
import type { CacheRegistry, ReadFields } from '@tenon/kube'
import { type DeviceUse, deviceUse } from '../scale-down/nodes/device-use.ts'

/** Without both kinds, device utilization is not considered. */
export const deviceKinds = [kinds.resourceSlice, kinds.resourceClaim] as const

/** Names of devices; their attributes are large and not needed. */
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

/**
 * Follows both kinds if both can be read.
 * @returns the current use, by node.
 */
export function followDevices(
  registry: CacheRegistry,
  readable: ReadonlySet<ResourceType>,
): () => ReadonlyMap<string, DeviceUse> {
  if (!deviceKinds.every((kind) => readable.has(kind))) return () => new Map()
  const slices = registry.cache(kinds.resourceSlice, { fields: sliceFields })
  const claims = registry.cache(kinds.resourceClaim)
  return () => deviceUse(slices.list(), claims.list())
}
