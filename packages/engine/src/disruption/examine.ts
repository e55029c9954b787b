/** The engine's door for questions about removing nodes. */
import { TypeReader } from '../provisioning/instance-rows.ts'
import type { Problem } from '../snapshot/problem.ts'
import type { SchedulingControl } from '../snapshot/result.ts'
import { keepersFirst, searchGlobal } from './global.ts'
import { searchMulti } from './multi.ts'
import type {
  Consolidation,
  ConsolidationQuestion,
  DisruptionAnswer,
  DisruptionQuestion,
} from './question.ts'
import { searchSingle, survey } from './single.ts'
import { WhatIf } from './what-if.ts'

/**
 * Answers a question about a problem whose pods are those without a place and those of the candidates,
 * whose policy is that of a disruption, and whose nodes have the candidates among them, in use as they are.
 */
export function examine(
  problem: Problem,
  question: DisruptionQuestion,
  control: SchedulingControl,
): DisruptionAnswer {
  const reader = control.types ?? new TypeReader()
  const isGlobal = question.kind === 'consolidate' && question.search === 'global'
  const order = isGlobal ? keepersFirst(question.candidates) : undefined
  const whatIf = new WhatIf(problem, question.candidates, reader, control, order)
  if (question.kind === 'consolidate') return { kind: 'consolidation', ...search(whatIf, question, control) }
  const gone = whatIf.candidates.filter(({ input }) => question.gone.includes(input.node))
  return {
    kind: 'removal',
    removal: whatIf.without(gone, (simulation) => ({
      ending: 'undo',
      value: whatIf.removal(simulation),
    })),
  }
}

function search(whatIf: WhatIf, question: ConsolidationQuestion, control: SchedulingControl): Consolidation {
  switch (question.search) {
    case 'single':
      return searchSingle(whatIf, question, control)
    case 'multi':
      return searchMulti(whatIf, question, control)
    case 'global':
      return searchGlobal(whatIf, question, control)
    case 'survey':
      return survey(whatIf, question, control)
  }
}
