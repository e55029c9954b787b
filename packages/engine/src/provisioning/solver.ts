/** The decision: first fit, and where the policy asks for it something cheaper. */
import { sumOfPrices } from '@tenon/api'
import type { Problem } from '../snapshot/problem.ts'
import type { MalformedObject, PoolWithoutTypes, SchedulingControl } from '../snapshot/result.ts'
import { CompiledProblem } from './compiled-problem.ts'
import { isCheaper } from './improvement/cheaper.ts'
import { TypeReader } from './instance-rows.ts'
import { type Outcome, Simulation } from './simulation.ts'

/** A decision by indexes of the problem. Plain data. */
export interface Solution extends Outcome {
  readonly poolsWithoutTypes: readonly PoolWithoutTypes[]
  readonly malformed: readonly MalformedObject[]
  /** By shape: zones that rules about zones left to its pods before the first placement. */
  readonly validZones: ReadonlyMap<number, readonly string[]>
  readonly pricePerHour: number
  readonly firstFitPricePerHour: number
}

/** Decides for every pod of the problem. */
export function solve(problem: Problem, control: SchedulingControl): Solution {
  const compiled = new CompiledProblem(problem, control.types ?? new TypeReader())
  const firstFit = new Simulation(compiled, 'firstFit')
  const validZones = firstFit.validZones()
  firstFit.run(control)
  const firstFitPricePerHour = firstFit.cost.pricePerHour
  const replanned = withoutLaunches(firstFit, compiled, control)
  const outcome = (replanned ?? improved(firstFit, compiled, control)).outcome()
  return {
    ...outcome,
    poolsWithoutTypes: compiled.poolsWithoutTypes,
    malformed: compiled.malformed,
    validZones,
    pricePerHour: sumOfPrices(outcome.claims.map(({ pricePerHour }) => pricePerHour)).pricePerHour,
    firstFitPricePerHour,
  }
}

/**
 * A plan that changes where pods were to run and needs no new node for it. A pod whose room another one took is only
 * without a place while those still waiting keep theirs. Undefined when there is no such plan, or no need for one.
 */
function withoutLaunches(
  pinned: Simulation,
  compiled: CompiledProblem,
  control: SchedulingControl,
): Simulation | undefined {
  if (compiled.problem.planned.size === 0 || !pinned.isComplete || pinned.claims.length === 0)
    return undefined
  const free = Simulation.unplanned(compiled)
  free.run(control)
  return free.isComplete && free.claims.length === 0 && strandsNoMore(free, pinned) ? free : undefined
}

/** The cheaper of the plans that the policy allows; first fit's when no other is. */
function improved(firstFit: Simulation, compiled: CompiledProblem, control: SchedulingControl): Simulation {
  const { improvement } = compiled.problem.policy
  const isLate = () => control.shouldStop() || control.shouldImprove?.() === false
  if (improvement === undefined || !firstFit.isComplete || firstFit.claims.length === 0) return firstFit
  firstFit.regroup(improvement, isLate)
  // Tighter nodes only pay if pods land where they were meant to.
  if (improvement === 'free' || firstFit.claims.length < 2 || isLate()) return firstFit
  const thrifty = new Simulation(compiled, 'thrifty')
  thrifty.run({ shouldStop: isLate })
  if (!thrifty.isComplete) return firstFit
  thrifty.regroup(improvement, isLate)
  return isBetter(thrifty, firstFit) ? thrifty : firstFit
}

function isBetter(plan: Simulation, than: Simulation): boolean {
  return isCheaper(plan.cost, than.cost) && strandsNoMore(plan, than)
}

function strandsNoMore(plan: Simulation, than: Simulation): boolean {
  const before = than.failed
  return [...plan.failed].every((pod) => before.has(pod))
}
