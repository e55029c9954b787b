/** Builders for groups of pods. */
import type { Pod } from '@tenon/api'
import type { PodGroupInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { times } from '../../testing/builders.test-support.ts'

/** A group of these pods, all of which are needed. */
export function aGroup(name: string, pods: readonly Pod[], rest: Partial<PodGroupInput> = {}): PodGroupInput {
  return {
    id: `podgroups.scheduling.k8s.io/default/${name}`,
    members: pods.map(({ metadata }) => metadata.uid ?? ''),
    minCount: pods.length,
    bound: 0,
    priority: 0,
    createdAt: '2026-01-01T00:00:00Z',
    ...rest,
  }
}

/** `count` pods made alike. */
export function members(count: number, make: () => Pod): readonly Pod[] {
  return times(count, make)
}

/** How many of the pods have a place, on nodes and on new claims that are created now. */
export function placedOf(pods: readonly Pod[], result: SchedulingResult): number {
  const placed = new Set([
    ...result.placements.map(({ pod }) => pod),
    ...result.claims.flatMap((claim) => claim.pods),
  ])
  return pods.filter((pod) => placed.has(pod)).length
}
