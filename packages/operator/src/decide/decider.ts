/** Who decides where pods go. */
import {
  type DisruptionQuestion,
  type DisruptionResult,
  disruptionResult,
  Examiner,
  knownSpecs,
  KnownPackings,
  type Problem,
  problemOf,
  schedule,
  type SchedulingControl,
  type SchedulingInput,
  type SchedulingResult,
  TypeReader,
} from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import { PodWatch } from './pod-watch.ts'

/** When a decision ends although it is not complete. */
export interface DecisionOptions {
  /** Milliseconds from the call. */
  readonly deadlineMs: number
  readonly signal: AbortSignal
}

/** Makes scheduling decisions, one at a time; others wait for their turn. */
export interface SchedulingDecider {
  /**
   * Decides for every pod of the input. At the deadline, or when the signal aborts, it returns what is
   * decided by then; the other pods are listed as undecided.
   */
  decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult>
  /**
   * Answers a question about removing nodes of the input. At the deadline, or when the signal aborts, it
   * says what it found by then.
   * @returns undefined when that was before the question was looked at, or a decision about pods that wait
   * came in between.
   */
  examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined>
  /** Ends what is under way and gives back what is held. */
  close(): Promise<void>
}

/** Decides in the calling thread, without a pause: for few pods, and where time is virtual. */
export class InlineDecider implements SchedulingDecider {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #types = new TypeReader()
  readonly #packings = new KnownPackings()
  readonly #examiner = new Examiner()
  readonly #specs = knownSpecs()
  /** What the last question was about; often there are more on the same input. */
  #last: { readonly input: SchedulingInput; readonly problem: Problem } | undefined

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult> {
    return Promise.try(() => this.#watched(options, (control) => schedule(input, control)))
  }

  examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    return Promise.try(() =>
      this.#watched(options, (control) =>
        disruptionResult(input, question, this.#examiner.examine(this.#problemOf(input), question, control)),
      ),
    )
  }

  /** @param input never changed after it was given. */
  #problemOf(input: SchedulingInput): Problem {
    if (this.#last?.input !== input) this.#last = { input, problem: problemOf(input, this.#specs) }
    return this.#last.problem
  }

  #watched<T>({ deadlineMs, signal }: DecisionOptions, run: (control: SchedulingControl) => T): T {
    const watch = new PodWatch({ clock: this.#clock, deadlineMs, isAborted: () => signal.aborted })
    try {
      const { shouldStop, onPod } = watch
      return run({ shouldStop, onPod, types: this.#types, packings: this.#packings })
    } catch (error) {
      throw watch.asPodError(error)
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** The result of a decision that ended before it began. */
export function nothingDecided({ pods }: SchedulingInput): SchedulingResult {
  return {
    claims: [],
    deferred: [],
    placements: [],
    failures: [],
    undecided: pods,
    poolsWithoutTypes: [],
    malformed: [],
    validZones: new Map(),
    pricePerHour: 0,
    firstFitPricePerHour: 0,
    faults: [],
  }
}
