/** Decides for questions. Most are about pods, so that the code about nodes is loaded with the first question about one. */
import type { DisruptionQuestion, DisruptionResult, SchedulingInput } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import type { DecisionOptions, SchedulingDecider } from './decider.ts'
import { InlineScheduler } from './inline-scheduler.ts'

export class QuestionDecider extends InlineScheduler implements SchedulingDecider {
  readonly #load: () => Promise<SchedulingDecider>
  #ofNodes: Promise<SchedulingDecider> | undefined

  constructor(clock: Pick<Clock, 'monotonic'>) {
    super(clock)
    this.#load = async () => new (await import('./inline-decider.ts')).InlineDecider(clock)
  }

  async examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    this.#ofNodes ??= this.#load()
    return await (await this.#ofNodes).examine(input, question, options)
  }
}
