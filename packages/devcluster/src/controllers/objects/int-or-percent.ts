import type { IntOrPercent } from './workloads.ts'

/** The number for `5` or `25%` of `total`; 0 for other text. */
export function resolveIntOrPercent(value: IntOrPercent, total: number, round: 'up' | 'down'): number {
  if (typeof value === 'number') return value
  const percent = /^(\d+)%$/.exec(value)?.[1]
  if (percent === undefined) return 0
  const exact = (Number(percent) * total) / 100
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact)
}
