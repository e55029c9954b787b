/** Builds what answers questions about decisions. */
import { guardedProvider } from '../cloud/provider-layers.ts'
import { DisruptionBudgets } from '../disruption/budget.ts'
import { PoolQuestions } from '../questions/pool-questions.ts'
import { Questions } from '../questions/questions.ts'
import { inputsOf } from './inputs.ts'
import type { Assembly } from './parts.ts'

export function questionsOf(parts: Assembly): Questions {
  const { caches, launchGuard } = parts
  const provider = guardedProvider(parts.provider, parts.provider, launchGuard, caches.nodePools)
  const asked = { ...parts, provider }
  const budgets = new DisruptionBudgets(parts)
  return new Questions({
    ...asked,
    pools: new PoolQuestions({ ...asked, budgets }),
    inputs: inputsOf(asked),
    // Most commands ask nothing about nodes, and need not load how these are disrupted.
    nodes: async () => (await import('./node-questions.ts')).nodeQuestionsOf(parts, budgets),
  })
}
