/** Builds what answers questions about one node. */
import type { DisruptionBudgets } from '../disruption/budget.ts'
import { ConsolidationSearch } from '../disruption/methods/consolidation-search.ts'
import { ConsolidationPolicy } from '../disruption/policy.ts'
import { NodeVerdicts } from '../disruption/explain.ts'
import { NodeExamination } from '../questions/node-examination.ts'
import { NodeQuestions } from '../questions/node-questions.ts'
import type { Assembly } from './parts.ts'
import { readersOf } from './readers.ts'
import { repairsOf } from './repairs.ts'

export function nodeQuestionsOf(parts: Assembly, budgets: DisruptionBudgets): NodeQuestions {
  const readers = readersOf(parts, budgets)
  const policy = new ConsolidationPolicy(parts)
  const repairs = repairsOf(parts)
  const outlooks = repairs && { outlooks: repairs.rules }
  const search = new ConsolidationSearch({ ...parts, ...readers }, 'single')
  return new NodeQuestions({
    ...parts,
    ...readers,
    examination: new NodeExamination({ ...readers, search }),
    verdictsWith: (answers) =>
      new NodeVerdicts({ ...parts, ...readers, budgets, policy, answers, ...outlooks }),
  })
}
