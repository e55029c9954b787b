/** Stops a decision in time, even in the middle of one pod. */
import type { PackingCache } from './packing/packing-cache.ts'
import type { TypeReader } from './types/instance-rows.ts'

/** Limits and caches of a decision. They do not change what is decided, unless `shouldStop` ends it early. */
export interface SchedulingControl {
  /** Whether to stop; the decision then returns what it has. Called often, so it must be cheap. */
  readonly shouldStop: () => boolean
  /** Called with the index of each pod before it is decided, and with -1 after the last. */
  readonly onPod?: (pod: number) => void
  /** False once the time for finding a cheaper plan is used up. Absent = no limit. */
  readonly shouldImprove?: () => boolean
  /** Cache of instance types that have been read, kept from one decision to the next. */
  readonly types?: TypeReader
  /** Cache of packings, kept likewise. */
  readonly packings?: PackingCache
}

/** Thrown where a decision stops in the middle of a search. */
export class Interrupted extends Error {
  constructor() {
    super('the decision was told to stop')
    this.name = 'Interrupted'
  }
}

/** Steps between two calls of `shouldStop`, which takes longer than most steps. */
const stepsPerQuestion = 32

/** Checks for the end of the time. Every loop whose length one object of the user can set calls `step`. */
export class Pace {
  #control: SchedulingControl
  #steps = 0

  constructor(control: SchedulingControl) {
    this.#control = control
  }

  /**
   * @param steps how many ordinary steps this one is worth.
   * @throws Interrupted when the decision has to stop.
   */
  step(steps = 1): void {
    this.#steps += steps
    if (this.#steps < stepsPerQuestion) return
    this.#steps = 0
    if (this.#control.shouldStop()) throw new Interrupted()
  }

  /** Reports the pod, by its index, that the next steps are for; -1 for none in particular. */
  about(pod: number): void {
    this.#control.onPod?.(pod)
  }

  /** Calls `run` under another control. */
  under<T>(control: SchedulingControl, run: () => T): T {
    const before = this.#control
    this.#control = control
    try {
      return run()
    } finally {
      before.onPod?.(-1)
      this.#control = before
    }
  }
}
