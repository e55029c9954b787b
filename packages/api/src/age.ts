/** Durations as kubectl prints them. */

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const yearMs = 365 * dayMs

interface Unit {
  readonly ms: number
  readonly letter: string
  readonly rest: { readonly ms: number; readonly letter: string }
  /** From this duration on, the smaller unit is not printed. */
  readonly exactBelowMs: number
}

const second = { ms: secondMs, letter: 's' }
const minute: Unit = { ms: minuteMs, letter: 'm', rest: second, exactBelowMs: 10 * minuteMs }
const hour: Unit = { ms: hourMs, letter: 'h', rest: minute, exactBelowMs: 8 * hourMs }
const day: Unit = { ms: dayMs, letter: 'd', rest: hour, exactBelowMs: 8 * dayMs }
const year: Unit = { ms: yearMs, letter: 'y', rest: day, exactBelowMs: 8 * yearMs }

const units: readonly { readonly belowMs: number; readonly unit: Unit }[] = [
  { belowMs: 3 * hourMs, unit: minute },
  { belowMs: 2 * dayMs, unit: hour },
  { belowMs: 2 * yearMs, unit: day },
]

/** Prints `119s`, `5m30s`, `3h12m`, `47h`, `6d4h`, `400d`, `2y17d`, and `<invalid>` for a negative duration. */
export function humanDuration(ms: number): string {
  if (ms <= -2 * secondMs || Number.isNaN(ms)) return '<invalid>'
  if (ms < 2 * minuteMs) return `${Math.max(0, Math.trunc(ms / secondMs))}s`
  const unit = units.find(({ belowMs }) => ms < belowMs)?.unit ?? year
  const whole = `${Math.floor(ms / unit.ms)}${unit.letter}`
  const rest = Math.floor((ms % unit.ms) / unit.rest.ms)
  return ms < unit.exactBelowMs && rest > 0 ? `${whole}${rest}${unit.rest.letter}` : whole
}

export function age(timestamp: unknown, nowMs: number): string {
  const ms = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
  return Number.isNaN(ms) ? '<unknown>' : humanDuration(nowMs - ms)
}
