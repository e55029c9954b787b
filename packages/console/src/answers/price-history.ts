/** The cluster's price per hour over time, from launches and removals in the journal. */
import type { JournalEntry } from '@tenon/operator'

/** The price from a time on, and what changed it. */
interface PriceStep {
  readonly atMs: number
  readonly pricePerHour: number
  readonly launched: number
  readonly removed: number
}

export interface PriceHistory {
  /** Oldest first; the first step starts with the journal. */
  readonly steps: readonly PriceStep[]
  /** Launches and removals of unknown price; they are ignored. */
  readonly unpriced: number
}

/**
 * Computes backwards from the current price.
 * @param entries oldest first.
 * @param pricePerHour the current price.
 */
export function priceHistory(
  entries: readonly JournalEntry[],
  nowMs: number,
  pricePerHour: number,
): PriceHistory {
  const prices = new Map<string, number>()
  for (const entry of entries)
    if (entry.pricePerHour?.after !== undefined && ['launch', 'launched'].includes(entry.kind))
      for (const claim of entry.nodeClaims) prices.set(claim, entry.pricePerHour.after)
  const steps: PriceStep[] = []
  let price = pricePerHour
  let unpriced = 0
  steps.push({ atMs: nowMs, pricePerHour: price, launched: 0, removed: 0 })
  for (const { at, kind, nodeClaims, observed } of entries.toReversed()) {
    const isLaunch = kind === 'launched'
    if (observed === true || (!isLaunch && kind !== 'removed')) continue
    steps.push({
      atMs: Date.parse(at),
      pricePerHour: price,
      launched: isLaunch ? nodeClaims.length : 0,
      removed: isLaunch ? 0 : nodeClaims.length,
    })
    for (const claim of nodeClaims) {
      const own = prices.get(claim)
      if (own === undefined) unpriced++
      else price += isLaunch ? -own : own
    }
    // Rounding errors must not make a price negative.
    price = Math.max(0, Math.round(price * 1e9) / 1e9)
  }
  const [first] = entries
  if (first !== undefined)
    steps.push({ atMs: Date.parse(first.at), pricePerHour: price, launched: 0, removed: 0 })
  return { steps: steps.toReversed(), unpriced }
}
