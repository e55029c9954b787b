/** Looks at one node as consolidation would, whatever else is in its way. */
import { type PricePerHour, sumOfPrices } from '@tenon/api'
import { type ConsolidationFinding, type RemovalResult, unlimited, type Verdict } from '@tenon/engine'
import { balancedThreshold } from '@tenon/engine/consolidation'
import { type Candidate, isEmpty } from '../disruption/candidates.ts'
import type { ConsolidationSearch } from '../disruption/methods/consolidation-search.ts'
import type { PreparedRemoval, RemovalSimulation } from '../disruption/simulation.ts'
import { reasonFor } from '../disruption/explain.ts'

interface Dependencies {
  readonly simulation: RemovalSimulation
  readonly search: ConsolidationSearch
}

/** What would come in place of a node. */
interface Replacement {
  readonly nodePool: string
  /** Of the cheapest type; empty when none is left. */
  readonly instanceType: string
  readonly pricePerHour: PricePerHour
}

/** What the removal of one node would come to. Prices are per hour; undefined where one is not known. */
export interface Saving {
  readonly replacements: readonly Replacement[]
  /** Negative when the replacements cost more. */
  readonly saves: number | undefined
  /** What it has to save; with `isMore` it has to be more than that. Undefined where the search did not come to it. */
  readonly mustSave: number | undefined
  readonly isMore: boolean
}

/** What was found. */
export interface Examined {
  readonly findings: readonly ConsolidationFinding[]
  readonly saving: Saving | undefined
}

export class NodeExamination {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @returns undefined for a node that has no pods to move, that drifted, or of whose pods nothing can be said.
   */
  async of(candidate: Candidate, signal: AbortSignal): Promise<Examined | undefined> {
    if (isEmpty(candidate) || reasonFor(candidate) === 'Drifted') return undefined
    const { search, simulation } = this.#deps
    const prepared = await simulation.prepare([candidate], true, signal)
    const judged = prepared?.candidates.get(candidate.name)
    if (prepared === undefined || judged === undefined) return undefined
    const budgets = new Map([[candidate.pool.metadata.name, unlimited]])
    const result = await search.find(prepared, [judged], { budgets }, signal)
    if (result === undefined) return undefined
    return {
      findings: result.findings,
      saving: await this.#saving(judged, prepared, result.findings, signal),
    }
  }

  async #saving(
    candidate: Candidate,
    prepared: PreparedRemoval,
    findings: readonly ConsolidationFinding[],
    signal: AbortSignal,
  ): Promise<Saving | undefined> {
    const removal = await this.#deps.simulation.without(prepared, [candidate], signal)
    if (removal === undefined || removal.stranded.length > 0) return undefined
    const saves = savesOf(candidate, removal)
    const isBalanced = candidate.pool.spec.disruption?.consolidationPolicy === 'Balanced'
    return {
      replacements: removal.replacements.map(
        ({ nodePool, instanceTypes: [cheapest = ''], pricePerHour }) => ({
          nodePool,
          instanceType: cheapest,
          pricePerHour,
        }),
      ),
      saves,
      mustSave: isBalanced ? leastSavings(findings, saves) : 0,
      isMore: !isBalanced,
    }
  }
}

function savesOf({ pricePerHour }: Candidate, { replacements }: RemovalResult): number | undefined {
  const after = sumOfPrices(replacements.map((each) => each.pricePerHour))
  return pricePerHour === undefined || after.unpriced > 0 ? undefined : pricePerHour - after.pricePerHour
}

/** Savings that a Balanced NodePool demands of the move, from its score. */
function leastSavings(
  findings: readonly ConsolidationFinding[],
  saves: number | undefined,
): number | undefined {
  const verdict = findings.flatMap((each): readonly Verdict[] =>
    each.kind === 'scored' ? each.verdicts : [],
  )[0]
  if (verdict === undefined || saves === undefined || verdict.score <= 0) return undefined
  return Number.isFinite(verdict.score) ? (saves * balancedThreshold) / verdict.score : 0
}
