/** How many devices of a node are in use (cluster-autoscaler.md 6.2). */
import type { ResourceClaim, ResourceSlice } from '@tenon/api'

/** The pool of a node with the highest share in use. */
export interface DeviceUse {
  readonly driver: string
  readonly pool: string
  readonly ratio: number
}

interface DevicePool {
  readonly node: string
  readonly driver: string
  readonly name: string
  readonly generation: number
  readonly devices: ReadonlySet<string>
}

/** By node name; nodes without devices of their own are absent. Pools that nodes share are ignored. */
export function deviceUse(
  slices: readonly ResourceSlice[],
  claims: readonly ResourceClaim[],
): ReadonlyMap<string, DeviceUse> {
  const pools = poolsOf(slices)
  if (pools.size === 0) return new Map()
  const held = heldDevices(claims)
  const found = new Map<string, DeviceUse>()
  for (const [key, { node, driver, name: pool, devices }] of pools) {
    const inUse = held.get(key) ?? new Set<string>()
    const ratio = [...devices].filter((each) => inUse.has(each)).length / devices.size
    if (ratio > (found.get(node)?.ratio ?? -1)) found.set(node, { driver, pool, ratio })
  }
  return found
}

/** Pools with devices, from their newest slices. */
function poolsOf(slices: readonly ResourceSlice[]): ReadonlyMap<string, DevicePool> {
  const pools = new Map<string, DevicePool>()
  for (const { spec } of slices) {
    const { driver, pool, nodeName: node, devices = [] } = spec
    if (node === undefined || devices.length === 0) continue
    const key = keyOf(driver, pool.name)
    const known = pools.get(key)
    if (known !== undefined && known.generation > pool.generation) continue
    const before = known?.generation === pool.generation ? known.devices : []
    const all = new Set([...before, ...devices.map(({ name }) => name)])
    pools.set(key, { node, driver, name: pool.name, generation: pool.generation, devices: all })
  }
  return pools
}

/** Allocated devices, by pool, without those with admin access. */
function heldDevices(claims: readonly ResourceClaim[]): ReadonlyMap<string, ReadonlySet<string>> {
  const held = new Map<string, Set<string>>()
  for (const { status } of claims) {
    for (const { driver, pool, device, adminAccess } of status?.allocation?.devices?.results ?? []) {
      if (adminAccess === true) continue
      const key = keyOf(driver, pool)
      held.set(key, (held.get(key) ?? new Set()).add(device))
    }
  }
  return held
}

/** Neither name contains a space. */
const keyOf = (driver: string, pool: string): string => `${driver} ${pool}`
