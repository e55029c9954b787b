/** Builds what reads nodes and instance types for decisions about disruption. */
import type { DisruptionBudgets } from '../disruption/budget.ts'
import { CandidateFinder } from '../disruption/candidates.ts'
import { CatalogueReader } from '../disruption/catalogue.ts'
import { RemovalSimulation } from '../disruption/simulation.ts'
import { WholeUnits } from '../disruption/whole-units.ts'
import type { PoolKind } from '../state/nodepools/observed-pools.ts'
import { inputsOf } from './inputs.ts'
import type { Assembly } from './parts.ts'

/** What reads the cluster for methods, with what this provider sells. */
export function readersOf(parts: Assembly, budgets: DisruptionBudgets, kind?: PoolKind) {
  const catalogue = new CatalogueReader(parts)
  const candidates = new CandidateFinder(parts)
  const simulation = new RemovalSimulation({ ...parts, inputs: inputsOf(parts, kind) })
  const units = new WholeUnits({ ...parts, candidates })
  const sources = { ...parts, catalogue, candidates, budgets, simulation }
  return { catalogue, candidates, simulation, units, sources }
}
