/** The decision: first fit, and where the policy asks for it something cheaper. */
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
  const firstFitPricePerHour = firstFit.pricePerHour
  const outcome = improved(firstFit, compiled, control).outcome()
  return {
    ...outcome,
    poolsWithoutTypes: compiled.poolsWithoutTypes,
    malformed: compiled.malformed,
    validZones,
    pricePerHour: outcome.claims.reduce((sum, claim) => sum + claim.pricePerHour, 0),
    firstFitPricePerHour,
  }
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
  const costOf = ({ claims, pricePerHour }: Simulation) => ({ nodes: claims.length, pricePerHour })
  if (!isCheaper(costOf(plan), costOf(than))) return false
  const before = than.failed
  return [...plan.failed].every((pod) => before.has(pod))
}
