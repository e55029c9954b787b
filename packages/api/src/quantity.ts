/**
 * Kubernetes quantities (`500m`, `4Gi`, `1e3`) and their canonical integers: millicores for `cpu`, whole units
 * for everything else. Fractions round up, as in kube-scheduler.
 */
import { setOwn, ownValue } from './own.ts'
import type { ResourceList } from './objects.ts'
import type { Resources } from './instance-types.ts'

// Three digits of exponent exceed any real amount and bound the cost of the arithmetic.
const pattern = /^([+-]?)(\d+\.?\d*|\.\d+)([EPTGMK]i|[numkMGTPE]|[eE][+-]?0*\d{1,3})?$/

const decimalExponent: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}

const binaryExponent: Readonly<Record<string, bigint>> = {
  Ki: 10n,
  Mi: 20n,
  Gi: 30n,
  Ti: 40n,
  Pi: 50n,
  Ei: 60n,
}

/** The exact value `units` × 10^`exponent`. */
interface Exact {
  readonly units: bigint
  readonly exponent: number
}

export function isQuantity(text: string): boolean {
  return pattern.test(text)
}

/**
 * A quantity times 10^`scale`, rounded away from zero.
 * @throws RangeError if `text` is not a quantity.
 */
export function scaledQuantity(text: string, scale: number): bigint {
  const { units, exponent } = exactQuantity(text)
  const shift = exponent + scale
  if (shift >= 0) return units * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  const quotient = units / divisor
  if (units % divisor === 0n) return quotient
  return units > 0n ? quotient + 1n : quotient - 1n
}

function exactQuantity(text: string): Exact {
  const match = pattern.exec(text)
  if (match === null)
    throw new RangeError(`"${text}" is not a Kubernetes quantity (for example 500m, 4Gi or 2)`)
  const [, sign, digits = '', suffix = ''] = match
  const [whole = '', fraction = ''] = digits.split('.')
  const magnitude = BigInt(whole + fraction || '0')
  const units = sign === '-' ? -magnitude : magnitude
  const binary = ownValue(binaryExponent, suffix)
  if (binary !== undefined) return { units: units << binary, exponent: -fraction.length }
  const exponent = /^[eE][+-]?\d+$/.test(suffix)
    ? Number(suffix.slice(1))
    : (ownValue(decimalExponent, suffix) ?? 0)
  return { units, exponent: exponent - fraction.length }
}

const cache = new Map<string, number>()
const cacheLimit = 4096

/**
 * The amount of a resource in its canonical unit, rounded away from zero: `100u` of cpu is a whole millicore,
 * `0.5m` of memory a whole byte. So sums of requests are never too low, and at most one unit per addend too
 * high. Exact up to 2^53 units, beyond that the nearest double.
 * @throws RangeError if `quantity` is not a quantity.
 */
export function parseResource(name: string, quantity: string | number): number {
  const text = typeof quantity === 'number' ? String(quantity) : quantity
  const scale = name === 'cpu' ? 3 : 0
  const key = scale === 0 ? text : `c${text}`
  const known = cache.get(key)
  if (known !== undefined) return known
  const amount = Number(scaledQuantity(text, scale))
  if (cache.size >= cacheLimit) cache.clear()
  cache.set(key, amount)
  return amount
}

export function parseResources(list: ResourceList | undefined): Resources {
  const amounts: Record<string, number> = {}
  for (const [name, quantity] of Object.entries(list ?? {}))
    setOwn(amounts, name, parseResource(name, quantity))
  return amounts
}

const byteResources = /^(memory|ephemeral-storage|storage|hugepages-.*|.*\/.*memory)$/
const binarySuffixes = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const

/** The shortest exact quantity: `1500m`, `2`, `4Gi`. */
export function formatResource(name: string, amount: number): string {
  if (name === 'cpu') return amount % 1000 === 0 ? String(amount / 1000) : `${amount}m`
  if (!byteResources.test(name)) return String(amount)
  let value = amount
  let suffix = ''
  for (const next of binarySuffixes) {
    if (value === 0 || value % 1024 !== 0) break
    value /= 1024
    suffix = next
  }
  return `${value}${suffix}`
}

export function formatResources(amounts: Resources): ResourceList {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [name, formatResource(name, amount)]),
  )
}

const nano = 1_000_000_000n
const decimalSuffixes = ['E', 'P', 'T', 'G', 'M', 'k', '', 'm', 'u', 'n'] as const

/** The quantity in billionths, rounded away from zero; undefined if the text is not a quantity. */
export function quantityNanos(text: string): bigint | undefined {
  return isQuantity(text) ? scaledQuantity(text, 9) : undefined
}

const canonical = new Map<string, string>()

/**
 * The form in which the API server stores a quantity (`0.5` → `500m`); text that is not a quantity is returned
 * as it is.
 */
export function canonicalQuantity(text: string): string {
  const known = canonical.get(text)
  if (known !== undefined) return known
  const suffix = pattern.exec(text)?.[3] ?? ''
  const nanos = quantityNanos(text)
  const found = nanos === undefined ? text : canonicalText(nanos, suffix)
  if (canonical.size >= cacheLimit) canonical.clear()
  canonical.set(text, found)
  return found
}

/** Formats billionths with binary (`512Mi`) or decimal (`1500m`, `2`) suffixes. */
export function quantityText(nanos: bigint, units: 'binary' | 'decimal'): string {
  return canonicalText(nanos, units === 'binary' ? 'Ki' : '')
}

/** Uses the largest unit of the suffix's kind that leaves no fraction. */
function canonicalText(nanos: bigint, suffix: string): string {
  if (nanos === 0n) return '0'
  if (suffix.endsWith('i')) {
    for (const unit of binarySuffixes.toReversed()) {
      const scale = nano << (binaryExponent[unit] ?? 0n)
      if (nanos % scale === 0n) return `${nanos / scale}${unit}`
    }
    if (nanos % nano === 0n) return `${nanos / nano}`
  }
  const isExponential = /^[eE][+-]?\d/.test(suffix)
  for (const [index, unit] of decimalSuffixes.entries()) {
    const scale = 10n ** BigInt(27 - 3 * index)
    if (nanos % scale !== 0n) continue
    return isExponential && unit !== '' ? `${nanos / scale}e${18 - 3 * index}` : `${nanos / scale}${unit}`
  }
  return `${nanos}n`
}
