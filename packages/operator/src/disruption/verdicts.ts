/** What stands against the disruption of a node now, or has been found out about it. */
import { type DisruptionReason, isConditionTrue, type NodePool } from '@tenon/api'
import { pauseSentence } from '../brake/brake.ts'
import type { StateNode } from '../cluster/nodes/state-node.ts'
import type { DisruptionAnswers, Verdict } from './answers.ts'
import type { DisruptionBudgets } from './budget.ts'
import { type Candidate, type CandidateFinder, isEmpty } from './candidates.ts'
import type { Catalogue } from './catalogue.ts'
import type { ConsolidationPolicy } from './policy.ts'
import { sentence } from './refusals.ts'

/** What this file works with. */
interface Dependencies {
  readonly candidates: CandidateFinder
  readonly budgets: DisruptionBudgets
  readonly policy: ConsolidationPolicy
  readonly answers: Pick<DisruptionAnswers, 'verdictOn'>
}

type BudgetText = (pool: NodePool, reason: DisruptionReason) => string | undefined

const unknown: Verdict = {
  cause: 'unknown',
  message: 'The placement of its pods elsewhere has not been evaluated yet',
}

export class NodeVerdicts {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Answers for nodes, as things are now: each budget is looked up once. */
  now(catalogue: Catalogue): (stateNode: StateNode) => Verdict {
    const { budgets, candidates } = this.#deps
    const budgetText = budgetTexts(budgets)
    return (stateNode) => {
      const found = candidates.of(stateNode, catalogue, 'graceful')
      if (found === undefined) return unknown
      return 'by' in found
        ? { cause: found.by, message: sentence(found.text) }
        : this.#verdictOnCandidate(found, budgetText)
    }
  }

  #verdictOnCandidate(candidate: Candidate, budgetText: BudgetText): Verdict {
    const { answers, policy } = this.#deps
    const { claim, pool, name } = candidate
    const isDrifted = isConditionTrue(claim, 'Drifted')
    const reason: DisruptionReason = isDrifted ? 'Drifted' : isEmpty(candidate) ? 'Empty' : 'Underutilized'
    const against = isDrifted ? undefined : policy.against(candidate)
    if (against !== undefined) return { cause: 'policy', message: sentence(against) }
    const budget = budgetText(pool, reason)
    if (budget !== undefined) return { cause: 'budget', message: budget }
    if (reason === 'Empty') return { cause: 'possible', message: `It can be disrupted (reason=${reason})` }
    const rest = isDrifted ? undefined : policy.restOf(candidate)
    if (rest !== undefined) return { cause: 'failedCommand', message: sentence(rest) }
    return (
      answers.verdictOn(name) ??
      (isDrifted ? { cause: 'possible', message: `It can be disrupted (reason=${reason})` } : unknown)
    )
  }
}

/** Says where a budget is used up; each is looked up once. */
function budgetTexts(budgets: DisruptionBudgets): BudgetText {
  const known = new Map<string, string | undefined>()
  return (pool, reason) => {
    const { name } = pool.metadata
    const key = `${name}/${reason}`
    if (!known.has(key)) {
      const { allowed, disrupting, pause } = budgets.stateOf(pool, reason)
      const details = `NodePool=${name}, allowed=${allowed}, disrupted=${disrupting}`
      const used = allowed > disrupting ? undefined : `No budget is left for reason ${reason} (${details})`
      known.set(key, pause === undefined ? used : pauseSentence(pause))
    }
    return known.get(key)
  }
}
