/** How the price of an instance is shared among what is on it (ask.md 11). */
import { ownValue, type Resources } from '@tenon/api'

/** They say how many pods there may be, or cost little beside the rest. */
const uncounted = /^(pods|ephemeral-storage|hugepages-.*|attachable-volumes-.*)$/

/**
 * Every resource of an instance has the same part of the price: CPU, memory, and each kind of device. What is on it
 * has of that what it asks for of what there is; where more is asked for than there is, all of it is shared.
 * @param asked what each asks for.
 * @returns in the same order, parts of the price per hour.
 */
export function priceShares(
  pricePerHour: number,
  allocatable: Resources,
  asked: readonly Resources[],
): readonly number[] {
  const resources = Object.keys(allocatable).filter(
    (name) => !uncounted.test(name) && (ownValue(allocatable, name) ?? 0) > 0,
  )
  const shares = asked.map(() => 0)
  for (const resource of resources) {
    const amounts = asked.map((requests) => ownValue(requests, resource) ?? 0)
    const sum = amounts.reduce((total, amount) => total + amount, 0)
    const most = Math.max(ownValue(allocatable, resource) ?? 0, sum)
    for (const [at, amount] of amounts.entries())
      shares[at] = (shares[at] ?? 0) + (pricePerHour / resources.length) * (amount / most)
  }
  return shares
}
