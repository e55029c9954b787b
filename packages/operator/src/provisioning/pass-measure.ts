import type { Clock } from '@tenon/runtime'
import type { Metrics } from '../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly metrics: Pick<Metrics, 'schedulingDuration'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/** Measures how long it takes to decide. */
export class PassMeasure {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns what observes the time from now on. */
  begin(): () => void {
    const { clock, metrics } = this.#deps
    const start = clock.monotonic()
    return () => {
      metrics.schedulingDuration.observe({ controller: 'provisioner' }, (clock.monotonic() - start) / 1000)
    }
  }
}
