/** Answers questions about the removal of nodes. */
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

/** The state that questions about one problem share. */
interface SharedState {
  readonly problem: Problem
  readonly candidates: RemovalQuestion['candidates']
  readonly whatIf: WhatIf
  /** The control of the question that is being answered. */
  control: SchedulingControl
}

/** Answers questions one after the other. Questions about the same problem and candidates share one state. */
export class Examiner {
  #shared: SharedState | undefined

  /**
   * @param problem its pods are the pending ones and those of the candidates, its policy is for disruption, and its
   * nodes include the candidates with the pods that run there.
   */
  examine(problem: Problem, question: DisruptionQuestion, control: SchedulingControl): DisruptionAnswer {
    try {
      return this.#answer(problem, question, control)
    } catch (error) {
      // If this question throws, the state is left with changes that were not undone.
      this.#shared = undefined
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

  /** A simulator for the question; a global search tries nodes in its own order. */
  #whatIfFor(problem: Problem, question: ConsolidationQuestion, control: SchedulingControl): WhatIf {
    const { candidates } = question
    if (question.search !== 'global') return this.#sharedFor(problem, candidates, control).whatIf
    return new WhatIf(
      problem,
      candidates,
      control.types ?? new TypeReader(),
      control,
      keepersFirst(candidates),
    )
  }

  #removal(problem: Problem, question: RemovalQuestion, control: SchedulingControl): Removal {
    const { whatIf } = this.#sharedFor(problem, question.candidates, control)
    const gone = whatIf.candidates.filter(({ input }) => question.gone.includes(input.node))
    return whatIf.without(gone, (simulation) => ({ ending: 'undo', value: whatIf.removal(simulation) }))
  }

  /** @param candidates must not be changed later: the state is reused for the same list. */
  #sharedFor(
    problem: Problem,
    candidates: RemovalQuestion['candidates'],
    control: SchedulingControl,
  ): SharedState {
    const before = this.#shared
    if (before !== undefined && before.problem === problem && before.candidates === candidates) {
      before.control = control
      return before
    }
    // Free the old state before the new one is built.
    this.#shared = undefined
    const current = { control }
    const whatIf = new WhatIf(problem, candidates, control.types ?? new TypeReader(), {
      shouldStop: () => current.control.shouldStop(),
      onPod: (pod) => current.control.onPod?.(pod),
      ...(control.packings && { packings: control.packings }),
    })
    const shared: SharedState = Object.assign(current, { problem, candidates, whatIf })
    this.#shared = shared
    return shared
  }
}

/** Answers one question; see {@link Examiner.examine}. */
export function examine(
  problem: Problem,
  question: DisruptionQuestion,
  control: SchedulingControl,
): DisruptionAnswer {
  return new Examiner().examine(problem, question, control)
}

/** The answer when the time is over before anything was tried. */
function unanswered(question: DisruptionQuestion): DisruptionAnswer {
  if (question.kind === 'remove')
    return {
      kind: 'removal',
      removal: { claims: [], placements: new Int32Array(), stranded: new Map(), isComplete: false },
    }
  return {
    kind: 'consolidation',
    moves: [],
    findings: [],
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
