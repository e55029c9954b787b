import type { ResourceSlice } from '@tenon/api'

/**
 * The first of the drivers that has not published all devices of any pool of its on a node
 * (lifecycle.md 3.4); undefined once all have.
 * @param drivers comma-separated, as in annotation `karpenter.sh/requested-dra-drivers`.
 * @param slices of that node.
 */
export function unpublishedDriver(drivers: string, slices: readonly ResourceSlice[]): string | undefined {
  const published = new Set(completePools(slices).map(({ driver }) => driver))
  return drivers
    .split(',')
    .map((driver) => driver.trim())
    .find((driver) => driver !== '' && !published.has(driver))
}

interface Pool {
  readonly driver: string
  readonly generation: number
  readonly expected: number
  readonly found: number
}

/** Pools whose latest generation is there as a whole. */
function completePools(slices: readonly ResourceSlice[]): readonly Pool[] {
  const pools = new Map<string, Pool>()
  for (const { spec } of slices) {
    const { driver, pool } = spec
    const key = JSON.stringify([driver, pool.name])
    const known = pools.get(key)
    if (known !== undefined && known.generation > pool.generation) continue
    const before = known?.generation === pool.generation ? known.found : 0
    pools.set(key, {
      driver,
      generation: pool.generation,
      expected: pool.resourceSliceCount,
      found: before + 1,
    })
  }
  return [...pools.values()].filter(({ expected, found }) => expected > 0 && found === expected)
}
