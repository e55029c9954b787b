/** The engine's door for questions about removing nodes. */
import { TypeReader } from '../scheduling/types/instance-rows.ts'
import type { Problem } from '../scheduling/problem/problem.ts'
import { keepersFirst, searchGlobal } from './global.ts'
import { Interrupted, type SchedulingControl } from '../scheduling/pace.ts'
import { searchMulti } from './multi.ts'
import type {
  Consolidation,
  ConsolidationQuestion,
  DisruptionAnswer,
  DisruptionQuestion,
  Removal,
  RemovalQuestion,
} from './question.ts'
import { searchSingle, survey } from './single.ts'
import { searchTogether } from './together.ts'
import { WhatIf } from './what-if.ts'

/** What questions about removing nodes of one problem share. */
interface Standing {
  readonly problem: Problem
  readonly candidates: RemovalQuestion['candidates']
  readonly whatIf: WhatIf
  /** Of the question in progress. */
  control: SchedulingControl
}

/** Answers questions one after the other. Those about removing nodes of the same problem share what they can. */
export class Examiner {
  #standing: Standing | undefined

  /**
   * Answers a question about a problem whose pods are those without a place and those of the candidates,
   * whose policy is that of a disruption, and whose nodes have the candidates among them, in use as they are.
   */
  examine(problem: Problem, question: DisruptionQuestion, control: SchedulingControl): DisruptionAnswer {
    try {
      return this.#answer(problem, question, control)
    } catch (error) {
      // What simulations have changed of the common ground is not known any more.
      this.#standing = undefined
      if (!(error instanceof Interrupted)) throw error
      return unanswered(question)
    }
  }

  #answer(problem: Problem, question: DisruptionQuestion, control: SchedulingControl): DisruptionAnswer {
    if (question.kind === 'remove')
      return { kind: 'removal', removal: this.#removal(problem, question, control) }
    return {
      kind: 'consolidation',
      ...search(this.#whatIfFor(problem, question, control), question, control),
    }
  }

  /** A global search tries nodes in an order of its own. */
  #whatIfFor(problem: Problem, question: ConsolidationQuestion, control: SchedulingControl): WhatIf {
    const { candidates } = question
    if (question.search !== 'global') return this.#standingFor(problem, candidates, control).whatIf
    return new WhatIf(
      problem,
      candidates,
      control.types ?? new TypeReader(),
      control,
      keepersFirst(candidates),
    )
  }

  #removal(problem: Problem, question: RemovalQuestion, control: SchedulingControl): Removal {
    const { whatIf } = this.#standingFor(problem, question.candidates, control)
    const gone = whatIf.candidates.filter(({ input }) => question.gone.includes(input.node))
    return whatIf.without(gone, (simulation) => ({ ending: 'undo', value: whatIf.removal(simulation) }))
  }

  /** @param candidates never changed after they were given. */
  #standingFor(
    problem: Problem,
    candidates: RemovalQuestion['candidates'],
    control: SchedulingControl,
  ): Standing {
    const before = this.#standing
    if (before !== undefined && before.problem === problem && before.candidates === candidates) {
      before.control = control
      return before
    }
    // The old ground is not needed while the new one is made.
    this.#standing = undefined
    const current = { control }
    const whatIf = new WhatIf(problem, candidates, control.types ?? new TypeReader(), {
      shouldStop: () => current.control.shouldStop(),
      onPod: (pod) => current.control.onPod?.(pod),
      ...(control.packings && { packings: control.packings }),
    })
    const standing: Standing = Object.assign(current, { problem, candidates, whatIf })
    this.#standing = standing
    return standing
  }
}

/** Answers one question by itself; see {@link Examiner.examine}. */
export function examine(
  problem: Problem,
  question: DisruptionQuestion,
  control: SchedulingControl,
): DisruptionAnswer {
  return new Examiner().examine(problem, question, control)
}

/** What is known when the time was over before anything was looked at. */
function unanswered(question: DisruptionQuestion): DisruptionAnswer {
  if (question.kind === 'remove')
    return {
      kind: 'removal',
      removal: { claims: [], placements: new Int32Array(), stranded: new Map(), isComplete: false },
    }
  return {
    kind: 'consolidation',
    moves: [],
    remarks: [],
    isLimitedByBudget: false,
    examined: 0,
    isTimedOut: true,
    unseenPools: [
      ...new Set([...question.unseenPools, ...question.candidates.map(({ nodePool }) => nodePool)]),
    ],
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
    case 'together':
      return searchTogether(whatIf, question, control)
    case 'survey':
      return survey(whatIf, question, control)
  }
}
