/** Decides about pods and nodes in the calling thread. */
import {
  type DisruptionQuestion,
  type DisruptionResult,
  knownSpecs,
  type Problem,
  problemOf,
  type SchedulingInput,
} from '@tenon/engine'
import { disruptionResult, Examiner } from '@tenon/engine/consolidation'
import type { DecisionOptions, SchedulingDecider } from './decider.ts'
import { InlineScheduler } from './inline-scheduler.ts'

export class InlineDecider extends InlineScheduler implements SchedulingDecider {
  readonly #examiner = new Examiner()
  readonly #specs = knownSpecs()
  /** Several questions in a row are often about the same input. */
  #last: { readonly input: SchedulingInput; readonly problem: Problem } | undefined

  examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    return Promise.try(() =>
      this.watched(options, (control) =>
        disruptionResult(input, question, this.#examiner.examine(this.#problemOf(input), question, control)),
      ),
    )
  }

  /** @param input must not be changed afterwards. */
  #problemOf(input: SchedulingInput): Problem {
    if (this.#last?.input !== input) this.#last = { input, problem: problemOf(input, this.#specs) }
    return this.#last.problem
  }
}
