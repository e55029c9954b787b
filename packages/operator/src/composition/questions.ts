/** Builds what answers questions about decisions. */
import { guardedProvider } from '../cloud/provider-layers.ts'
import { DisruptionBudgets } from '../disruption/budget.ts'
import { ResumePace } from '../disruption/resume-pace.ts'
import { PoolQuestions } from '../questions/pool-questions.ts'
import { Questions } from '../questions/questions.ts'
import { inputsOf } from './inputs.ts'
import { policyOf } from '../settings.ts'
import type { Assembly } from './parts.ts'

export function questionsOf(parts: Assembly): Questions {
  const { caches, launchGuard } = parts
  const provider = guardedProvider(parts.provider, parts.provider, launchGuard, caches.nodePools)
  const asked = { ...parts, provider }
  const pace = policyOf(parts.settings).readsAnnotations ? new ResumePace(parts) : undefined
  const budgets = new DisruptionBudgets({ ...parts, ...(pace && { pace }) })
  return new Questions({
    ...asked,
    pools: new PoolQuestions({ ...asked, budgets }),
    inputs: inputsOf(asked),
    // Most commands ask nothing about nodes, and need not load how these are disrupted.
    nodes: async () => (await import('./node-questions.ts')).nodeQuestionsOf(parts, budgets),
  })
}
