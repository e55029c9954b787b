import type { Loose } from '../columns/cells.ts'
import { isQuantity, quantityNanos } from '../quantity.ts'
import type { Findings } from './reporting.ts'
import { checkLabelSelector } from './selectors.ts'

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** Checks an amount of storage, which is required. */
export function checkStorage(amount: unknown, path: string, found: Findings): void {
  if (amount === undefined) return found.required(path)
  if (typeof amount === 'string' && isQuantity(amount) && (quantityNanos(amount) ?? 0n) <= 0n) {
    found.invalid(path, amount, 'must be greater than zero')
  }
}

/** Checks access modes, of which one is required. */
export function checkAccessModes(modes: unknown, path: string, found: Findings): void {
  if (!Array.isArray(modes) || modes.length === 0)
    return found.required(path, 'at least 1 access mode is required')
  for (const mode of modes as unknown[]) found.oneOf(path, mode, accessModes)
}

/** Checks the spec of a claim, in a claim or in a template. */
export function checkClaimSpec(spec: Loose | undefined, path: string, found: Findings): void {
  if (spec === undefined) return found.required(path)
  checkAccessModes(spec['accessModes'], `${path}.accessModes`, found)
  checkStorage(spec['resources']?.requests?.storage, `${path}.resources[storage]`, found)
  checkLabelSelector(spec['selector'], `${path}.selector`, found)
}
