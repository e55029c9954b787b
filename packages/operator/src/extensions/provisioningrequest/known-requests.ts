/** The room that an earlier process kept for ProvisioningRequests is known before anything is decided (gangs.md 7.6). */
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'requests'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

/** What cannot be read for the moment holds nothing up for longer. */
const unknownMs = 60_000
const pollMs = 100

export class KnownRequests {
  readonly #deps: Dependencies
  /** When it was first waited for; of a process that stood by, not before it leads. */
  #waitingSinceMs: number | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Resolves when all requests are known, or a minute after the first call. */
  async settle(signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps
    const sinceMs = (this.#waitingSinceMs ??= clock.monotonic())
    while (!state.requests.isKnown && clock.monotonic() - sinceMs < unknownMs)
      await clock.sleep(pollMs, signal)
  }
}
