/** The engine's door for scheduling: objects in, objects out. */
import type { Pod } from '@tenon/api'
import type { SchedulingInput } from '../snapshot/input.ts'
import { problemOf } from '../snapshot/problem.ts'
import type { Failure, Placement, SchedulingControl, SchedulingResult } from '../snapshot/result.ts'
import { type Solution, solve } from './solver.ts'

const untilDone: SchedulingControl = { shouldStop: () => false }

/**
 * Decides for every pod of the input. Equal input gives equal output, whatever its order.
 * @param control may stop the decision early; pods that were not decided then are listed as such.
 */
export function schedule(input: SchedulingInput, control: SchedulingControl = untilDone): SchedulingResult {
  return resultOf(input, solve(problemOf(input), control))
}

/** A solution in terms of the objects it was made from. */
export function resultOf(input: SchedulingInput, solution: Solution): SchedulingResult {
  const { pods, nodes, pools } = input
  const placements: Placement[] = []
  for (const [index, node] of solution.nodeOf.entries()) {
    const pod = pods[index]
    const name = nodes[node]?.name
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
    placements: placements.toSorted((a, b) => podOrder(a.pod, b.pod)),
    failures: failures.toSorted((a, b) => podOrder(a.pod, b.pod)),
    undecided: podsAt(solution.undecided).toSorted(podOrder),
    poolsWithoutTypes: solution.poolsWithoutTypes,
    malformed: solution.malformed,
    pricePerHour: solution.pricePerHour,
    firstFitPricePerHour: solution.firstFitPricePerHour,
  }
}

function podOrder({ metadata: a }: Pod, { metadata: b }: Pod): number {
  return (a?.uid ?? '') < (b?.uid ?? '') ? -1 : 1
}
