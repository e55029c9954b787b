/** Behaviour that users may set (operations.md 2). Durations are in milliseconds. */
export interface Settings {
  readonly batchMaxMs: number
  readonly batchIdleMs: number
  readonly preferences: 'Respect' | 'Ignore'
  readonly minValues: 'Strict' | 'BestEffort'
  /** Thousandths of a core given to this process; scales concurrency. */
  readonly cpuRequestsMillis: number
  /** Launch must have succeeded this long after a claim's creation. */
  readonly launchTimeoutMs: number
  readonly registrationTimeoutMs: number
  /** Pause before an emptiness decision is checked once more and carried out. */
  readonly validationDelayMs: number
  /** Pause between two passes of the disruption loop that found nothing. */
  readonly disruptionPollMs: number
  /** A pending pod asks for another pass this long after the last one. */
  readonly pendingRetryMs: number
}

/** What holds for settings that nobody gave. */
export const defaultSettings: Settings = {
  batchMaxMs: 10_000,
  batchIdleMs: 1_000,
  preferences: 'Respect',
  minValues: 'Strict',
  cpuRequestsMillis: 1_000,
  launchTimeoutMs: 5 * 60_000,
  registrationTimeoutMs: 15 * 60_000,
  validationDelayMs: 15_000,
  disruptionPollMs: 10_000,
  pendingRetryMs: 10_000,
}

/** Workers of a controller that scales with the CPUs given (operations.md 7). */
export function scaledConcurrency(least: number, most: number, cpuRequestsMillis: number): number {
  const cores = Math.ceil(cpuRequestsMillis / 1000)
  const scaled = Math.trunc(((most - least) / 59) * (cores - 1)) + least
  return Math.min(most, Math.max(least, scaled))
}
