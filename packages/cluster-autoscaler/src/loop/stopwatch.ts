import { type Clock, traced, type Tracer } from '@tenon/runtime'
import type { MetricSink } from '../model.ts'

interface Measures {
  readonly metrics: MetricSink
  readonly tracer?: Tracer | undefined
}

/** Measures steps of an iteration: `function_duration_seconds`, and spans where there is a tracer. */
export class Stopwatch {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #measures: Measures

  constructor(clock: Pick<Clock, 'monotonic'>, measures: Measures) {
    this.#clock = clock
    this.#measures = measures
  }

  /** Measures a step that takes no requests. @returns a function that ends the measurement. */
  start(step: string): () => void {
    const startMs = this.#clock.monotonic()
    return () => {
      const tookMs = this.#clock.monotonic() - startMs
      this.#measures.metrics.observe('function_duration_seconds', tookMs / 1000, { function: step })
    }
  }

  /** A step that throws is traced, but not in the metric. */
  async run<T>(step: string, work: () => Promise<T>): Promise<T> {
    return await traced(this.#measures.tracer, step, {}, async () => {
      const done = this.start(step)
      const result = await work()
      done()
      return result
    })
  }
}

/** Unix seconds, as in `last_activity`. */
export function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
