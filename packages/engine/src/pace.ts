/** Keeps a decision to its time, also inside what it does for one pod. */
import type { SchedulingControl } from './input/result.ts'

/** A decision has to stop in the middle of what it does. */
export class Interrupted extends Error {
  constructor() {
    super('the decision was told to stop')
    this.name = 'Interrupted'
  }
}

/** Steps between two questions whether to stop: asking takes longer than most steps do. */
const stepsPerQuestion = 32

/** To be asked inside every loop that a single object can lengthen. */
export class Pace {
  #control: SchedulingControl
  #steps = 0

  constructor(control: SchedulingControl) {
    this.#control = control
  }

  /**
   * @param steps how many ordinary ones it takes as long as.
   * @throws Interrupted when the decision has to stop.
   */
  step(steps = 1): void {
    this.#steps += steps
    if (this.#steps < stepsPerQuestion) return
    this.#steps = 0
    if (this.#control.shouldStop()) throw new Interrupted()
  }

  /** Tells which pod, by its index, the next steps are for; -1: for none in particular. */
  about(pod: number): void {
    this.#control.onPod?.(pod)
  }

  /** Does what `run` says under another control. */
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
