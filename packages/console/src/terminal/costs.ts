/** What the cluster costs, counted a little with each frame, so that no frame waits for thousands of nodes. */
import type { CostDimension, CostReport } from '@tenon/ask'
import type { ConsoleModel } from '../model/model.ts'

/** It is counted again after so long. */
const againMs = 5000
/** Rows that are counted in one go: some 5 ms. */
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

  /** Whether {@link report} will soon be another one. */
  get isCounting(): boolean {
    return this.#counting !== undefined
  }

  /** The last one that was counted to its end; undefined while the first one is counted. */
  report(by: CostDimension, nowMs: number): CostReport | undefined {
    const isOld = (ms: number) => !(Math.abs(nowMs - ms) < againMs)
    // What was counted before everybody looked away is not of now.
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
