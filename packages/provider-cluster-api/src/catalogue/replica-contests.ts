/** MachineDeployments whose replicas somebody else sets again and again (reports-2.md 12). */
import type { Clock } from '@tenon/runtime'
import { type HubKey, hubText } from '../hub/keys.ts'

/** How often Tenon writes its number back within the time, before it gives way. */
const mostBacks = 2
const withinMs = 5 * 60_000
/** For how long it gives way: twice as long each time. */
const longestMs = 60 * 60_000

interface Contest {
  /** What Tenon wrote last. */
  written: number
  /** When it raised what somebody had lowered. */
  backs: readonly number[]
  pauseMs: number
  untilMs: number
}

/** Counts how often Tenon has written replicas back. Instants are monotonic. */
export class ReplicaContests {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #contests = new Map<string, Contest>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Tenon has changed the replicas. */
  wrote(key: HubKey, from: number, to: number): void {
    const now = this.#clock.monotonic()
    const text = hubText(key)
    const known = this.#contests.get(text) ?? { written: from, backs: [], pauseMs: withinMs, untilMs: 0 }
    this.#contests.set(text, known)
    const isBack = from < known.written && to > from
    known.written = to
    known.backs = known.backs.filter((atMs) => now - atMs < withinMs)
    if (!isBack) return
    known.backs = [...known.backs, now]
    if (known.backs.length < mostBacks) return
    known.untilMs = now + known.pauseMs
    known.pauseMs = Math.min(longestMs, 2 * known.pauseMs)
  }

  /** Why nothing is asked of it for now: a clause without a full stop. */
  because(key: HubKey): string | undefined {
    const known = this.#contests.get(hubText(key))
    if (known === undefined || this.#clock.monotonic() >= known.untilMs) return undefined
    return `somebody else sets its replicas again each time Tenon has raised them: leave spec.replicas out of what is applied to it`
  }
}
