import type { Clock } from '@tenon/runtime'
import type { MetricSink } from '../model.ts'

/** Measures steps of an iteration: `function_duration_seconds`. */
export class Stopwatch {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #metrics: MetricSink

  constructor(clock: Pick<Clock, 'monotonic'>, metrics: MetricSink) {
    this.#clock = clock
    this.#metrics = metrics
  }

  /** @returns a function that ends the measurement. */
  start(step: string): () => void {
    const startMs = this.#clock.monotonic()
    return () => {
      const tookMs = this.#clock.monotonic() - startMs
      this.#metrics.observe('function_duration_seconds', tookMs / 1000, { function: step })
    }
  }
}

/** Unix seconds, as in `last_activity`. */
export function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
