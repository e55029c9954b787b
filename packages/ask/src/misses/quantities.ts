/** Round amounts, as a person would choose them. */
import { formatResource } from '@tenon/api'

const ki = 1024
const mi = ki * 1024
const gi = mi * 1024

interface Grid {
  /** Amounts below this are multiples of `step`. */
  readonly below: number
  readonly step: number
}

const cores: readonly Grid[] = [
  { below: 100, step: 10 },
  { below: 4000, step: 50 },
  { below: 16_000, step: 500 },
  { below: Number.POSITIVE_INFINITY, step: 1000 },
]
const bytes: readonly Grid[] = [
  { below: 256 * mi, step: 16 * mi },
  { below: 4 * gi, step: 64 * mi },
  { below: 32 * gi, step: 256 * mi },
  { below: Number.POSITIVE_INFINITY, step: gi },
]
const counts: readonly Grid[] = [{ below: Number.POSITIVE_INFINITY, step: 1 }]

function gridOf(resource: string): readonly Grid[] {
  if (resource === 'cpu') return cores
  const isBytes =
    resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-')
  return isBytes ? bytes : counts
}

/** Round amounts above 0 and below `end`, in steps that grow with the amount. */
export function roundAmounts(resource: string, end: number): RoundAmounts {
  const parts: { readonly from: number; readonly step: number; readonly count: number }[] = []
  let from = 0
  for (const { below, step } of gridOf(resource)) {
    if (from >= end) break
    const count = Math.ceil((Math.min(below, end) - from) / step)
    parts.push({ from, step, count })
    from += count * step
  }
  return {
    length: Math.max(0, parts.reduce((sum, { count }) => sum + count, 0) - 1),
    at: (index) => {
      let left = index + 1
      for (const { from: start, step, count } of parts) {
        if (left < count) return start + left * step
        left -= count
      }
      throw new RangeError(`there is no amount ${index}`)
    },
  }
}

/** A lazy list. */
export interface RoundAmounts {
  readonly length: number
  readonly at: (index: number) => number
}

/** Bisects for the last index at which a monotone predicate holds; undefined if it holds nowhere. */
export async function lastThat(
  length: number,
  holds: (index: number) => Promise<boolean>,
): Promise<number | undefined> {
  let [from, to] = [0, length]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    if (await holds(middle)) from = middle + 1
    else to = middle
  }
  return from === 0 ? undefined : from - 1
}

/** Formats an amount in the unit that keeps it short. */
export function amountText(resource: string, amount: number): string {
  if (gridOf(resource) === bytes) {
    if (amount % gi === 0) return `${amount / gi}Gi`
    if (amount % mi === 0) return `${amount / mi}Mi`
  }
  return formatResource(resource, amount)
}
