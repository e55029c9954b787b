/** Arithmetic of resource amounts. */
import type { Resources } from './instance-types.ts'
import { ownValue, setOwn } from './own.ts'

export function sum(a: Resources, b: Resources): Resources {
  const total: Record<string, number> = { ...a }
  accumulate(total, b)
  return total
}

/** Adds to `total` in place: sums over many pods would allocate an object for each with {@link sum}. */
export function accumulate(total: Record<string, number>, more: Resources): void {
  for (const name in more)
    setOwn(total, name, (ownValue(total, name) ?? 0) + (ownValue(more, name) as number))
}

/** Subtracts `b` from `a` and keeps only the resources of `a`. */
export function difference(a: Resources, b: Resources): Resources {
  const rest: Record<string, number> = {}
  for (const name in a) setOwn(rest, name, (ownValue(a, name) as number) - (ownValue(b, name) ?? 0))
  return rest
}

/** Takes the maximum per resource. */
export function larger(a: Resources, b: Resources): Resources {
  const most: Record<string, number> = { ...a }
  for (const name in b) setOwn(most, name, Math.max(ownValue(most, name) ?? 0, ownValue(b, name) as number))
  return most
}

/**
 * Whether `requests` fit into `total`. A negative amount in `total` means that the node is overcommitted:
 * nothing fits.
 */
export function fits(requests: Resources, total: Resources): boolean {
  for (const name in total) if ((ownValue(total, name) as number) < 0) return false
  for (const name in requests)
    if ((ownValue(requests, name) as number) > (ownValue(total, name) ?? 0)) return false
  return true
}
