/** The engine's door for scheduling: objects in, objects out. */
import type { Pod } from '@tenon/api'
import type { SchedulingInput } from '../snapshot/input.ts'
import { type Problem, problemOf } from '../snapshot/problem.ts'
import type { Failure, Placement, SchedulingControl, SchedulingResult } from '../snapshot/result.ts'
import { type Solution, solve } from './solver.ts'

const untilDone: SchedulingControl = { shouldStop: () => false }

/**
 * Decides for every pod of the input. Equal input gives equal output, whatever its order.
 * @param control may stop the decision early; pods that were not decided then are listed as such.
 */
export function schedule(input: SchedulingInput, control: SchedulingControl = untilDone): SchedulingResult {
  const problem = problemOf(input)
  return resultOf(input, problem, solve(problem, control))
}

/** A solution in terms of the objects it was made from. */
export function resultOf(input: SchedulingInput, { shapeOf }: Problem, solution: Solution): SchedulingResult {
  const { pods, nodes, pools } = input
  const placements: Placement[] = []
  for (let i = 0; i < solution.placements.length; i += 2) {
    const pod = pods[solution.placements[i] as number]
    const name = nodes[solution.placements[i + 1] as number]?.name
    if (pod !== undefined && name !== undefined) placements.push({ pod, node: name })
  }
  const failures: Failure[] = []
  for (const [index, reason] of solution.failures) {
    const pod = pods[index]
    if (pod !== undefined) failures.push({ pod, reason })
  }
  const podsAt = (indexes: readonly number[]) => indexes.flatMap((index) => pods[index] ?? [])
  return {
    claims: solution.claims.flatMap(({ poolIndex, pods: indexes, ...claim }) => {
      const pool = pools[poolIndex]?.nodePool
      return pool === undefined ? [] : [{ ...claim, pool, pods: podsAt(indexes) }]
    }),
    placements,
    failures,
    undecided: podsAt(solution.undecided),
    poolsWithoutTypes: solution.poolsWithoutTypes,
    malformed: solution.malformed,
    validZones: zonesByPod(pods, shapeOf, solution.validZones),
    pricePerHour: solution.pricePerHour,
    firstFitPricePerHour: solution.firstFitPricePerHour,
  }
}

function zonesByPod(
  pods: readonly Pod[],
  shapeOf: Int32Array,
  zonesOfShape: Solution['validZones'],
): ReadonlyMap<Pod, ReadonlySet<string>> {
  if (zonesOfShape.size === 0) return new Map()
  const sets = new Map([...zonesOfShape].map(([shape, zones]) => [shape, new Set(zones)]))
  const byPod = new Map<Pod, ReadonlySet<string>>()
  for (const [index, pod] of pods.entries()) {
    const zones = sets.get(shapeOf[index] as number)
    if (zones !== undefined) byPod.set(pod, zones)
  }
  return byPod
}
