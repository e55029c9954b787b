/** Builds what answers questions about decisions. */
import { guardedProvider } from '../cloud/guarded-provider.ts'
import { DisruptionBudgets } from '../disruption/budget.ts'
import { NodeExplainer } from '../disruption/explain.ts'
import { ConsolidationSearch } from '../disruption/methods/consolidation-search.ts'
import { ConsolidationPolicy } from '../disruption/policy.ts'
import { NodeVerdicts } from '../disruption/explain.ts'
import { NodeExamination } from '../questions/node-examination.ts'
import { NodeQuestions } from '../questions/node-questions.ts'
import { PoolQuestions } from '../questions/pool-questions.ts'
import { Questions } from '../questions/questions.ts'
import { readersOf } from './disruption.ts'
import type { Assembly } from './parts.ts'
import { inputsOf } from './provisioning.ts'

/** Of a process that disrupts nothing. */
const noCommands = { has: () => false, isBackingOff: () => false }

export function questionsOf(parts: Assembly): Questions {
  const { caches, launchGuard } = parts
  const provider = guardedProvider(parts.provider, parts.provider, launchGuard, caches.nodePools)
  const asked = { ...parts, provider }
  const budgets = new DisruptionBudgets(parts)
  const readers = readersOf(parts, budgets)
  const policy = new ConsolidationPolicy(parts)
  const verdicts = new NodeVerdicts({ ...parts, ...readers, budgets, policy })
  const search = new ConsolidationSearch({ ...parts, ...readers }, 'single')
  return new Questions({
    ...asked,
    pools: new PoolQuestions({ ...asked, budgets }),
    inputs: inputsOf(asked),
    explainer: new NodeExplainer({ ...parts, ...readers, commands: noCommands, verdicts }),
    nodes: new NodeQuestions({
      ...parts,
      ...readers,
      examination: new NodeExamination({ ...readers, search }),
      verdictsWith: (answers) => new NodeVerdicts({ ...parts, ...readers, budgets, policy, answers }),
    }),
  })
}
