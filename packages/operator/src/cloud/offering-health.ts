/**
 * Offerings, instance types of a node class, node classes and NodePools for which launches failed. Each is left alone for a
 * time that doubles with every failure; then one launch tries it, and the others follow only after its success. A cloud
 * that says itself how long it refuses is believed.
 */
import type { LaunchScope, Unavailability } from '@tenon/api'
import { scopeKey } from '@tenon/engine'
import type { RefusedOffering } from '@tenon/provider'
import type { OfferingTrouble } from '../metrics/metrics.ts'

/** Pause after the first failure, and the longest pause. */
const firstPauseMs = 3 * 60_000
const longestPauseMs = 30 * 60_000
/** After this time a failure is forgotten. */
const forgetMs = 2 * 60 * 60_000

/** A refused scope; its pause grows with every refusal unless one is given. */
export type RefusedScope = LaunchScope & Pick<RefusedOffering, 'pauseMs' | 'endsOnRelease'>

interface Entry {
  readonly offering: LaunchScope
  readonly failures: number
  readonly because: string
  readonly untilMs: number
  readonly isProbed: boolean
  /** Given when the cloud said how long it refuses: until when it does even if capacity is given back. */
  readonly firmUntilMs?: number
}

/** All times are those of the caller's clock, in Unix milliseconds. */
export class OfferingHealth {
  readonly #entries = new Map<string, Entry>()

  /** Whether nothing is known against anything. */
  get isSound(): boolean {
    return this.#entries.size === 0
  }

  /** Whether nothing is known against the offering, so that any number of launches may use it. */
  isTrusted(offering: LaunchScope): boolean {
    return !this.#entries.has(scopeKey(offering))
  }

  /** Whether a decision may count on the offering: it is trusted, or due for a try. */
  isUsable(offering: LaunchScope, nowMs: number): boolean {
    const entry = this.#entries.get(scopeKey(offering))
    return entry === undefined || (!entry.isProbed && entry.untilMs <= nowMs)
  }

  /** Whether one launch is trying the offering, for all others. */
  isProbed(offering: LaunchScope): boolean {
    return this.#entries.get(scopeKey(offering))?.isProbed === true
  }

  /** Whether a launch may try the offering now; of one that is due, it is the only one until it ends. */
  begin(offering: LaunchScope, nowMs: number): boolean {
    if (!this.isUsable(offering, nowMs)) return false
    const key = scopeKey(offering)
    const entry = this.#entries.get(key)
    if (entry !== undefined) this.#entries.set(key, { ...entry, isProbed: true })
    return true
  }

  /** A launch got an instance. One that began before the cloud said how long it refuses ends no such pause. */
  succeeded(offering: LaunchScope, nowMs: number): void {
    const key = scopeKey(offering)
    const entry = this.#entries.get(key)
    if (entry?.isProbed === false && entry.firmUntilMs !== undefined && entry.untilMs > nowMs) return
    this.#entries.delete(key)
  }

  /**
   * A launch was refused. Refusals while the offering is left alone are of launches already under way.
   * @param because what the cloud said.
   */
  refused(
    { pauseMs, endsOnRelease = false, ...offering }: RefusedScope,
    nowMs: number,
    because = 'refused by the cloud',
  ): void {
    const key = scopeKey(offering)
    const before = this.#entries.get(key)
    if (pauseMs !== undefined) {
      this.#entries.set(key, {
        offering,
        failures: before?.failures ?? 1,
        because,
        untilMs: Math.max(before?.untilMs ?? 0, nowMs + pauseMs),
        isProbed: false,
        firmUntilMs: Math.max(before?.firmUntilMs ?? 0, endsOnRelease ? 0 : nowMs + pauseMs),
      })
      return
    }
    if (before !== undefined && !before.isProbed && before.untilMs > nowMs) return
    const failures = (before?.failures ?? 0) + 1
    const untilMs = nowMs + Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1))
    this.#entries.set(key, { offering, failures, because, untilMs, isProbed: false })
  }

  /** Capacity was given back: what the cloud refused for want of it may be tried again. */
  released(nowMs: number): void {
    for (const [key, entry] of this.#entries) {
      const { firmUntilMs } = entry
      if (firmUntilMs === undefined) continue
      if (firmUntilMs <= nowMs) this.#entries.delete(key)
      else this.#entries.set(key, { ...entry, untilMs: firmUntilMs })
    }
  }

  /** A launch ended for another reason and tells nothing: the next one may try. */
  ended(offering: LaunchScope): void {
    const key = scopeKey(offering)
    const entry = this.#entries.get(key)
    if (entry?.isProbed === true) this.#entries.set(key, { ...entry, isProbed: false })
  }

  /** What launches were refused for has been changed. @returns whether any were. */
  forgive(isChanged: (scope: LaunchScope) => boolean): boolean {
    const changed = [...this.#entries].filter(([, { offering }]) => isChanged(offering))
    for (const [key] of changed) this.#entries.delete(key)
    return changed.length > 0
  }

  /** Why decisions leave the offering out; undefined when they do not. */
  unavailability(offering: LaunchScope, nowMs: number): Unavailability | undefined {
    const entry = this.#entries.get(scopeKey(offering))
    if (entry === undefined || this.isUsable(offering, nowMs)) return undefined
    const { failures, because, untilMs, isProbed, firmUntilMs } = entry
    if (firmUntilMs !== undefined && !isProbed) return { because, untilMs }
    if (isProbed) return { because: `one launch tries it after ${timesText(failures)} (${because})` }
    return { because: `${timesText(failures)} (${because})`, untilMs }
  }

  /** Until when it is left alone, in Unix milliseconds; undefined when nothing is known against it. */
  untilMs(offering: LaunchScope): number | undefined {
    return this.#entries.get(scopeKey(offering))?.untilMs
  }

  /** Everything that is known against offerings, in order of name. */
  troubles(nowMs: number): readonly OfferingTrouble[] {
    return [...this.#entries]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { offering, failures, because, untilMs, isProbed }]) => ({
        ...offering,
        failures,
        because,
        phase: isProbed ? 'probed' : untilMs > nowMs ? 'waiting' : 'due',
        untilMs,
      }))
  }

  /** Forgets what was so long ago that it is not worth a probe. */
  sweep(nowMs: number): void {
    for (const [key, { untilMs, isProbed }] of this.#entries)
      if (!isProbed && untilMs + forgetMs <= nowMs) this.#entries.delete(key)
  }
}

function timesText(failures: number): string {
  return failures === 1 ? 'a launch failed' : `${failures} launches in a row failed`
}
