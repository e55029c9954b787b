/** How long decisions wait for the cluster state (cluster-state.md 6), and work for a complete pass. */
import type { Clock, Logger } from '@tenon/runtime'
import { shortened } from '../text.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from './metrics.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes' | 'syncAnswers'>
  readonly metrics: Pick<Metrics, 'stateNodes' | 'stateSynced' | 'stateUnsyncedTime'>
  readonly clock: Clock
  readonly logger: Logger
}

const alarmingMs = 30_000
const repeatMs = 10_000

/** Metrics of every sync check, and a log line while decisions have been waiting for long. */
export function reportSync({ clock, logger, metrics, state }: Dependencies): void {
  let lastMs = Number.NEGATIVE_INFINITY
  state.syncAnswers.add(({ isSynced, unsyncedMs, waitingFor }) => {
    metrics.stateSynced.set(isSynced ? 1 : 0)
    metrics.stateUnsyncedTime.set(unsyncedMs / 1000)
    metrics.stateNodes.set(state.stateNodes().length)
    if (unsyncedMs <= alarmingMs || clock.monotonic() - lastMs < repeatMs) return
    lastMs = clock.monotonic()
    logger.error('decisions wait until the cluster state is synced', {
      duration: `${Math.round(unsyncedMs / 1000)}s`,
      waitingFor: shortened(waitingFor),
    })
  })
}

/** Since when work has been waiting for a complete pass, by controller. */
export class PassAges {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Undefined while nothing waits. */
  readonly #waitingSinceMs = new Map<string, number | undefined>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  waiting(controller: string): void {
    this.#waitingSinceMs.set(controller, this.#waitingSinceMs.get(controller) ?? this.#clock.monotonic())
  }

  /** A pass has done all work that existed when it began. */
  complete(controller: string): void {
    this.#waitingSinceMs.set(controller, undefined)
  }

  agesMs(): ReadonlyMap<string, number> {
    const now = this.#clock.monotonic()
    return new Map(
      Array.from(this.#waitingSinceMs, ([name, since]) => [name, since === undefined ? 0 : now - since]),
    )
  }
}
