import type { LaunchScope, Unavailability } from '@tenon/api'
import { scopeKey } from '@tenon/engine'
import type { RefusedOffering } from '@tenon/provider'
import type { OfferingTrouble } from '../metrics/metrics.ts'

/** Pause after the first failure, and the longest pause. */
const firstPauseMs = 3 * 60_000
const longestPauseMs = 30 * 60_000
const forgetMs = 2 * 60 * 60_000

/** Its pause grows with every refusal unless the cloud gives one. */
export type RefusedScope = LaunchScope & Pick<RefusedOffering, 'pauseMs' | 'endsOnRelease'>

interface Entry {
  readonly offering: LaunchScope
  readonly failures: number
  readonly because: string
  readonly untilMs: number
  readonly isProbed: boolean
  /** Until when the cloud refuses even if capacity is released; undefined if it gave no time. */
  readonly firmUntilMs?: number
}

/**
 * Offerings, instance types of a node class, node classes and NodePools whose launches failed. Each is avoided for a time that
 * doubles with every failure. Then one launch tries it, and others follow after its success. If the cloud says how long it
 * refuses, that counts. All times are Unix milliseconds of the caller's clock.
 */
export class OfferingHealth {
  readonly #entries = new Map<string, Entry>()

  /** Whether nothing failed. */
  get isSound(): boolean {
    return this.#entries.size === 0
  }

  /** Whether the offering has not failed, so that any number of launches may use it. */
  isTrusted(offering: LaunchScope): boolean {
    return !this.#entries.has(scopeKey(offering))
  }

  /** Whether decisions may use the offering: it is trusted, or due for a trial. */
  isUsable(offering: LaunchScope, nowMs: number): boolean {
    const entry = this.#entries.get(scopeKey(offering))
    return entry === undefined || (!entry.isProbed && entry.untilMs <= nowMs)
  }

  /** Whether one launch is trying the offering for all others. */
  isProbed(offering: LaunchScope): boolean {
    return this.#entries.get(scopeKey(offering))?.isProbed === true
  }

  /** Whether a launch may try the offering now. If the offering is due, no other launch may until this one ends. */
  begin(offering: LaunchScope, nowMs: number): boolean {
    if (!this.isUsable(offering, nowMs)) return false
    const key = scopeKey(offering)
    const entry = this.#entries.get(key)
    if (entry !== undefined) this.#entries.set(key, { ...entry, isProbed: true })
    return true
  }

  /** A launch that began before the cloud gave a pause does not end that pause. */
  succeeded(offering: LaunchScope, nowMs: number): void {
    const key = scopeKey(offering)
    const entry = this.#entries.get(key)
    if (entry?.isProbed === false && entry.firmUntilMs !== undefined && entry.untilMs > nowMs) return
    this.#entries.delete(key)
  }

  /** Refusals during a pause are of launches that began before. @param because the message of the cloud. */
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

  /** Capacity was released: what the cloud refused for lack of it may be tried again. */
  released(nowMs: number): void {
    for (const [key, entry] of this.#entries) {
      const { firmUntilMs } = entry
      if (firmUntilMs === undefined) continue
      if (firmUntilMs <= nowMs) this.#entries.delete(key)
      else this.#entries.set(key, { ...entry, untilMs: firmUntilMs })
    }
  }

  /** A trial ended without a result: the next launch may try. */
  ended(offering: LaunchScope): void {
    const key = scopeKey(offering)
    const entry = this.#entries.get(key)
    if (entry?.isProbed === true) this.#entries.set(key, { ...entry, isProbed: false })
  }

  /** Forgets failures of what was changed. @returns whether there were any. */
  forgive(isChanged: (scope: LaunchScope) => boolean): boolean {
    const changed = [...this.#entries].filter(([, { offering }]) => isChanged(offering))
    for (const [key] of changed) this.#entries.delete(key)
    return changed.length > 0
  }

  /** Why decisions avoid the offering; undefined if they do not. */
  unavailability(offering: LaunchScope, nowMs: number): Unavailability | undefined {
    const entry = this.#entries.get(scopeKey(offering))
    if (entry === undefined || this.isUsable(offering, nowMs)) return undefined
    const { failures, because, untilMs, isProbed, firmUntilMs } = entry
    if (firmUntilMs !== undefined && !isProbed) return { because, untilMs }
    if (isProbed) return { because: `one launch tries it after ${timesText(failures)} (${because})` }
    return { because: `${timesText(failures)} (${because})`, untilMs }
  }

  /** Until when the offering is avoided; undefined if it has not failed. */
  untilMs(offering: LaunchScope): number | undefined {
    return this.#entries.get(scopeKey(offering))?.untilMs
  }

  /** All failures, sorted by name. */
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

  /** Forgets old failures without a trial. */
  sweep(nowMs: number): void {
    for (const [key, { untilMs, isProbed }] of this.#entries)
      if (!isProbed && untilMs + forgetMs <= nowMs) this.#entries.delete(key)
  }
}

function timesText(failures: number): string {
  return failures === 1 ? 'a launch failed' : `${failures} launches in a row failed`
}
