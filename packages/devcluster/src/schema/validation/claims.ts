import { isQuantity, quantityNanos } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import type { Findings } from './reporting.ts'
import { nameErrors } from './metadata.ts'
import { checkLabelSelector } from './selectors.ts'

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** Validates a required amount of storage. */
export function checkStorage(amount: unknown, path: string, found: Findings): void {
  if (amount === undefined) return found.required(path)
  if (typeof amount === 'string' && isQuantity(amount) && (quantityNanos(amount) ?? 0n) <= 0n) {
    found.invalid(path, amount, 'must be greater than zero')
  }
}

/** Validates access modes; one is required. */
export function checkAccessModes(modes: unknown, path: string, found: Findings): void {
  if (!Array.isArray(modes) || modes.length === 0)
    return found.required(path, 'at least 1 access mode is required')
  for (const mode of modes as unknown[]) found.oneOf(path, mode, accessModes)
  if (modes.length > 1 && modes.includes('ReadWriteOncePod')) {
    found.forbidden(path, 'may not use ReadWriteOncePod with other access modes')
  }
}

/** Checks the spec of a claim, in a claim or in a template. */
export function checkClaimSpec(spec: Loose | undefined, path: string, found: Findings): void {
  if (spec === undefined) return found.required(path)
  checkAccessModes(spec['accessModes'], `${path}.accessModes`, found)
  checkStorage(spec['resources']?.requests?.storage, `${path}.resources[storage]`, found)
  checkLabelSelector(spec['selector'], `${path}.selector`, found)
  const storageClass: unknown = spec['storageClassName']
  if (typeof storageClass === 'string' && storageClass !== '') {
    for (const words of nameErrors(storageClass, 'subdomain')) {
      found.invalid(`${path}.storageClassName`, storageClass, words)
    }
  }
  found.oneOf(`${path}.volumeMode`, spec['volumeMode'], ['Block', 'Filesystem'])
}
