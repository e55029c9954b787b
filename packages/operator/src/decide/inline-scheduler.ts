/** Decides about pods in the calling thread, without yielding to the event loop. */
import {
  PackingCache,
  schedule,
  type SchedulingControl,
  type SchedulingInput,
  type SchedulingResult,
  TypeReader,
} from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import type { DecisionOptions } from './decider.ts'
import { PodWatch } from './pod-watch.ts'

/** For few pods, and for virtual time. */
export class InlineScheduler {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #types = new TypeReader()
  readonly #packings = new PackingCache()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult> {
    return Promise.try(() => this.watched(options, (control) => schedule(input, control)))
  }

  protected watched<T>({ deadlineMs, signal }: DecisionOptions, run: (control: SchedulingControl) => T): T {
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

/** The result of a decision that ended before it looked at any pod. */
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
