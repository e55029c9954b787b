/** Cost reports, computed in small steps with each frame, so that no frame waits for thousands of nodes. */
import type { CostDimension, CostReport } from '@tenon/ask'
import type { ConsoleModel } from '../model/model.ts'

/** A report is recomputed after this time. */
const againMs = 5000
/** Rows per step: about 5 ms. */
const rowsAtOnce = 250

export class Costs {
  readonly #model: Pick<ConsoleModel, 'costing'>
  #by: CostDimension | undefined
  #begunMs = Number.NEGATIVE_INFINITY
  #askedMs = Number.NEGATIVE_INFINITY
  #counting: Generator<undefined, CostReport, undefined> | undefined
  #report: CostReport | undefined

  constructor(model: Pick<ConsoleModel, 'costing'>) {
    this.#model = model
  }

  /** Whether a newer {@link report} is being computed. */
  get isCounting(): boolean {
    return this.#counting !== undefined
  }

  /** The last complete report; undefined while the first one is being computed. */
  report(by: CostDimension, nowMs: number): CostReport | undefined {
    const isOld = (ms: number) => !(Math.abs(nowMs - ms) < againMs)
    // A partial report from before the view was left is outdated.
    const isAnother = this.#by !== by || isOld(this.#askedMs)
    if (isAnother) this.#report = undefined
    if (isAnother || (this.#counting === undefined && isOld(this.#begunMs))) {
      this.#by = by
      this.#begunMs = nowMs
      this.#counting = this.#model.costing(by)
    }
    this.#askedMs = nowMs
    this.#countOn()
    return this.#report
  }

  #countOn(): void {
    for (let row = 0; row < rowsAtOnce && this.#counting !== undefined; row++) {
      const { done = false, value } = this.#counting.next()
      if (!done || value === undefined) continue
      this.#report = value
      this.#counting = undefined
    }
  }
}
