import { ownValue } from '@tenon/api'
const form = /^([+-]?)(\d*)(?:\.(\d*))?(?:(m|k|M|G|T|P|E|n|u|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?\d+))?$/

const nano = 1_000_000_000n

const suffixNanos: Readonly<Record<string, bigint>> = {
  n: 1n,
  u: 1000n,
  m: 1_000_000n,
  '': nano,
  k: nano * 1000n,
  M: nano * 1_000_000n,
  G: nano * 1_000_000_000n,
  T: nano * 1_000_000_000_000n,
  P: nano * 1_000_000_000_000_000n,
  E: nano * 1_000_000_000_000_000_000n,
  Ki: nano << 10n,
  Mi: nano << 20n,
  Gi: nano << 30n,
  Ti: nano << 40n,
  Pi: nano << 50n,
  Ei: nano << 60n,
}

const decimalSuffixes = ['E', 'P', 'T', 'G', 'M', 'k', '', 'm', 'u', 'n'] as const
const binarySuffixes = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'] as const

interface Parsed {
  /** Amount in billionths, rounded up. */
  readonly nanos: bigint
  readonly canonical: string
}

const parsed = new Map<string, Parsed | null>()
/** Bound of the cache; real clusters use a few hundred different amounts. */
const maxCached = 10_000

function parse(text: string): Parsed | null {
  let result = parsed.get(text)
  if (result === undefined) {
    result = parseUncached(text)
    if (parsed.size >= maxCached) parsed.clear()
    parsed.set(text, result)
  }
  return result
}

function parseUncached(text: string): Parsed | null {
  const match = form.exec(text)
  if (match === null) return null
  const [, sign, whole = '', fraction = '', suffix, exponent] = match
  if (whole === '' && fraction === '') return null
  const digits = BigInt(whole + fraction)
  let numerator = digits * (exponent === undefined ? (ownValue(suffixNanos, suffix ?? '') ?? nano) : nano)
  let scale = fraction.length
  if (exponent !== undefined) scale -= Number(exponent)
  if (scale < -60 || scale > 400) return null
  if (scale < 0) numerator *= 10n ** BigInt(-scale)
  const divisor = scale > 0 ? 10n ** BigInt(scale) : 1n
  const up = numerator % divisor === 0n ? 0n : 1n
  const magnitude = numerator / divisor + up
  const nanos = sign === '-' ? -magnitude : magnitude
  return { nanos, canonical: canonicalText(nanos, suffix, exponent !== undefined) }
}

function canonicalText(nanos: bigint, suffix: string | undefined, exponential: boolean): string {
  if (nanos === 0n) return '0'
  if (suffix?.endsWith('i') === true) {
    for (const unit of binarySuffixes) {
      const scale = suffixNanos[unit] ?? 1n
      if (nanos % scale === 0n) return `${nanos / scale}${unit}`
    }
    if (nanos % nano === 0n) return `${nanos / nano}`
  }
  for (const [index, unit] of decimalSuffixes.entries()) {
    const scale = suffixNanos[unit] ?? 1n
    if (nanos % scale !== 0n) continue
    if (!exponential || unit === '') return `${nanos / scale}${unit}`
    return `${nanos / scale}e${18 - 3 * index}`
  }
  return `${nanos}n`
}

/** Whether the text is a quantity such as `500m`, `1.5Gi` or `2e3`. */
export function isQuantity(text: string): boolean {
  return parse(text) !== null
}

/** The quantity in billionths; undefined when the text is none. */
export function quantityNanos(text: string): bigint | undefined {
  return parse(text)?.nanos
}

/** The form in which the API server stores a quantity (`0.5` → `500m`); unchanged when it is none. */
export function canonicalQuantity(text: string): string {
  return parse(text)?.canonical ?? text
}

/** Billionths as a quantity: in units of 1024 (`512Mi`) or of 1000 (`1500m`, `2`). */
export function quantityText(nanos: bigint, units: 'binary' | 'decimal'): string {
  return canonicalText(nanos, units === 'binary' ? 'Ki' : '', false)
}
