/** `--sort-by`. */
import { type KubeObject, isQuantity, parseResource } from '@tenon/api'
import { KubectlError } from '../../errors.ts'
import { valuesAt } from '../jsonpath/evaluate.ts'
import { parsePath } from '../jsonpath/parse.ts'
import { JsonPathError } from '../jsonpath/template.ts'

/**
 * Sorts by the first value at a path: numbers and quantities by amount, strings naturally. Objects without a
 * value come first; equal ones keep their order.
 * @throws KubectlError if the path is invalid or does not fit.
 */
export function sortedBy<T>(
  path: string,
  items: readonly T[],
  objectOf: (item: T) => KubeObject,
): readonly T[] {
  try {
    const steps = parsePath(path)
    return items
      .map((item) => ({ item, key: valuesAt(objectOf(item), steps)[0] }))
      .toSorted((a, b) => compareKeys(a.key, b.key))
      .map(({ item }) => item)
  } catch (cause) {
    if (!(cause instanceof JsonPathError)) throw cause
    throw new KubectlError(`error: --sort-by: ${cause.message}`, { cause })
  }
}

function compareKeys(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  const [amountA, amountB] = [amountOf(a), amountOf(b)]
  if (amountA !== undefined && amountB !== undefined) return Math.sign(amountA - amountB)
  return natural.compare(String(a), String(b))
}

const natural = new Intl.Collator('en', { numeric: true })

function amountOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && isQuantity(value) ? parseResource('cpu', value) : undefined
}
