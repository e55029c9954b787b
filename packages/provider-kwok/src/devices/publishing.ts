/** The writes that give one node the desired slices (devices.md 3.20). */
import { isDeepStrictEqual } from 'node:util'
import type { ResourceSlice } from '@tenon/api'

/** Deletions come first. */
export interface SliceChanges {
  readonly gone: readonly ResourceSlice[]
  readonly made: readonly ResourceSlice[]
}

const poolOf = ({ spec }: ResourceSlice) => `${spec.driver}\n${spec.pool.name}`

/**
 * If anything in a pool differs, the whole pool is published again with the next generation, as slices of two
 * generations do not form one pool. Pools that are no longer wanted are deleted.
 */
export function sliceChanges(
  wanted: readonly ResourceSlice[],
  published: readonly ResourceSlice[],
): SliceChanges {
  const before = Map.groupBy(published, poolOf)
  const after = Map.groupBy(wanted, poolOf)
  const gone = [...before].flatMap(([key, slices]) => (after.has(key) ? [] : slices))
  const made: ResourceSlice[] = []
  for (const [key, slices] of after) {
    const old = before.get(key) ?? []
    const generation = Math.max(0, ...old.map(({ spec }) => spec.pool.generation))
    const isSame =
      old.length === slices.length &&
      slices.every((slice) => old.some((each) => isSameSlice(slice, each, generation)))
    if (isSame) continue
    gone.push(...old)
    made.push(...slices.map((slice) => ofGeneration(slice, generation + 1)))
  }
  return { gone, made }
}

function ofGeneration({ spec, ...slice }: ResourceSlice, generation: number): ResourceSlice {
  return { ...slice, spec: { ...spec, pool: { ...spec.pool, generation } } }
}

function isSameSlice(wanted: ResourceSlice, published: ResourceSlice, generation: number): boolean {
  return (
    wanted.metadata.name === published.metadata.name &&
    isDeepStrictEqual(ofGeneration(wanted, generation).spec, published.spec)
  )
}
