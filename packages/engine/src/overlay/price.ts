/**
 * A price per hour under an overlay.
 * @param change an unsigned number replaces the price, a signed one is added to it, and a signed
 * percentage changes it by that part of it; the result is never below 0.
 */
export function overlaidPrice(pricePerHour: number, change: string): number {
  if (!/^[+-]/.test(change)) return Number(change)
  if (!change.endsWith('%')) return Math.max(0, pricePerHour + Number(change))
  const percent = Number(change.slice(0, -1))
  // Apart, because a price that is unknown is infinite, and nothing of it is no number.
  return percent <= -100 ? 0 : pricePerHour * (1 + percent / 100)
}
