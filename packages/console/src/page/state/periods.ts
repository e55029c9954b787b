/** Periods of the calendar where the user is. */

export const steps = [
  { name: 'hour', title: 'Hour', shown: 48 },
  { name: 'day', title: 'Day', shown: 30 },
  { name: 'week', title: 'Week', shown: 13 },
  { name: 'month', title: 'Month', shown: 12 },
] as const
export type StepName = (typeof steps)[number]['name']

/** Bounds of the last periods, the current one included; in Unix milliseconds. Days with a change of the clock are shorter or longer. */
export function edgesOf(step: StepName, count: number, nowMs: number): readonly number[] {
  return Array.from({ length: count + 1 }, (_, at) => beginOf(step, nowMs, at + 1 - count))
}

/** When the current period begins, or one that is `offset` periods later. Weeks begin on Mondays. */
export function beginOf(step: StepName, nowMs: number, offset = 0): number {
  const now = new Date(nowMs)
  const [year, month, day] = [now.getFullYear(), now.getMonth(), now.getDate()]
  switch (step) {
    case 'hour': {
      // Hours are counted, as one of them comes twice, or never, when the clock changes.
      const hour = new Date(year, month, day, now.getHours()).getTime()
      return (nowMs - hour >= 3_600_000 ? hour + 3_600_000 : hour) + offset * 3_600_000
    }
    case 'day':
      return new Date(year, month, day + offset).getTime()
    case 'week':
      return new Date(year, month, day - ((now.getDay() + 6) % 7) + 7 * offset).getTime()
    case 'month':
      return new Date(year, month + offset, 1).getTime()
  }
}
