/** Reads what a pass of a disruption method is about. */
import { inSlices, type Slicing } from '@tenon/runtime'
import type { StateNode } from '../state/nodes/state-node.ts'
import type { DisruptionBudgets } from './budget.ts'
import type { Candidate, CandidateFinder } from './candidates.ts'
import type { CatalogueReader } from './catalogue.ts'
import type { DisruptionMethod, Pass } from './methods/method.ts'
import type { RemovalGround, RemovalSimulation } from './simulation.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly catalogue: CatalogueReader
  readonly candidates: CandidateFinder
  readonly budgets: DisruptionBudgets
  readonly simulation: RemovalSimulation
  readonly metrics: Pick<Metrics, 'disruptionEligibleNodes'>
  readonly slicing: Slicing
}

/** What a pass is about. */
export type Seen = Pick<Pass, 'candidates' | 'all' | 'catalogue' | 'ground'>

export class PassReader {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param isWanted whether an instance is looked at at all. */
  async read(
    method: DisruptionMethod,
    isWanted: (stateNode: StateNode) => boolean,
    signal: AbortSignal,
  ): Promise<Seen> {
    const { candidates: finder, metrics, simulation, slicing } = this.#deps
    const { disruptionClass, groups } = method
    const among = (instances: readonly StateNode[]) => method.among?.(instances) ?? instances
    const scope = { disruptionClass, among, ...(groups && { groups }) }
    const catalogue = await this.#deps.catalogue.read(signal)
    const all = await inSlices(finder.find(catalogue, scope, isWanted), slicing)
    const accepted = await inSlices(acceptedBy(method, all), slicing)
    const candidates = method.whole?.(accepted, catalogue) ?? accepted
    metrics.disruptionEligibleNodes.set({ reason: method.reason.toLowerCase() }, candidates.length)
    let ground: Promise<RemovalGround | undefined> | undefined
    return {
      catalogue,
      all,
      candidates,
      ground: () => (ground ??= simulation.ground(candidates, true, signal)),
    }
  }

  /** How many more nodes of each NodePool may go for the method's reason now. */
  budgetsOf({ reason }: DisruptionMethod): ReadonlyMap<string, number> {
    return this.#deps.budgets.remaining(reason)
  }
}

/** Candidates looked at between two questions whether others are to run. */
const candidatesPerStep = 16

/** Of the candidates, in steps, those that a method is about. */
function* acceptedBy(
  method: DisruptionMethod,
  all: readonly Candidate[],
): Generator<undefined, readonly Candidate[], undefined> {
  const accepted: Candidate[] = []
  for (const [at, candidate] of all.entries()) {
    if (at % candidatesPerStep === 0) yield
    if (method.accepts(candidate)) accepted.push(candidate)
  }
  return accepted
}
