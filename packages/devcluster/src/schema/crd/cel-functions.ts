import { isIP } from 'node:net'
import type { Environment } from '@marcbachmann/cel-js'
import { isQuantity, quantityNanos } from '../quantity.ts'
import { hasFormat } from './formats.ts'
import { compilePattern } from './regular-expressions.ts'

/** A quantity as rules compute with it. */
class CelQuantity {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

/** A parsed URL as rules look into it. */
class CelUrl {
  readonly url: URL

  constructor(text: string) {
    this.url = new URL(text, text.startsWith('/') ? 'http://relative.invalid' : undefined)
  }

  get relative(): boolean {
    return this.url.hostname === 'relative.invalid'
  }
}

/** Receiver of `sets.contains` and the like. */
class CelSets {
  readonly name = 'sets'
}

const nano = 1_000_000_000n

function pattern(text: string): RegExp {
  const compiled = compilePattern(text)
  if (compiled === undefined) throw new Error(`invalid regular expression: ${text}`)
  return compiled
}

function quantityOf(text: string): CelQuantity {
  const nanos = quantityNanos(text)
  if (nanos === undefined) throw new Error(`quantity: ${JSON.stringify(text)} is not a quantity`)
  return new CelQuantity(nanos)
}

function registerStrings(environment: Environment): void {
  environment
    .registerFunction(
      'string.find(string): string',
      (text: string, p: string) => pattern(p).exec(text)?.[0] ?? '',
    )
    .registerFunction('string.findAll(string): list<string>', (text: string, p: string) =>
      allMatches(text, p),
    )
    .registerFunction(
      'string.findAll(string, int): list<string>',
      (text: string, p: string, limit: bigint) =>
        limit < 0n ? allMatches(text, p) : allMatches(text, p).slice(0, Number(limit)),
    )
    .registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
      text.replaceAll(from, () => to),
    )
    .registerFunction(
      'string.replace(string, string, int): string',
      (text: string, from: string, to: string, limit: bigint) => replaceSome(text, from, to, Number(limit)),
    )
    .registerFunction('string.charAt(int): string', (text: string, index: bigint) => {
      if (index < 0n || index > BigInt(text.length)) throw new Error(`index out of range: ${index}`)
      return text.charAt(Number(index))
    })
    .registerFunction('string.reverse(): string', (text: string) => Array.from(text).toReversed().join(''))
    .registerFunction('string.format(list): string', formatText)
}

function allMatches(text: string, expression: string): string[] {
  const source = pattern(expression)
  return [...text.matchAll(new RegExp(source.source, `${source.flags}g`))].map((match) => match[0])
}

function replaceSome(text: string, from: string, to: string, limit: number): string {
  if (limit < 0) return text.replaceAll(from, () => to)
  const parts = text.split(from)
  const head = parts.slice(0, limit + 1).join(to)
  return parts.length <= limit + 1 ? head : `${head}${from}${parts.slice(limit + 1).join(from)}`
}

function formatText(text: string, values: readonly unknown[]): string {
  let next = 0
  return text.replace(
    /%(?:\.(\d+))?([%sdfexXob])/g,
    (_whole, precision: string | undefined, verb: string) => {
      if (verb === '%') return '%'
      if (next >= values.length) throw new Error(`format: index ${next} out of range`)
      return formatValue(values[next++], verb, precision === undefined ? 6 : Number(precision))
    },
  )
}

function formatValue(value: unknown, verb: string, precision: number): string {
  switch (verb) {
    case 'f':
      return Number(value).toFixed(precision)
    case 'e':
      return Number(value).toExponential(precision)
    case 'x':
      return (value as bigint).toString(16)
    case 'X':
      return (value as bigint).toString(16).toUpperCase()
    case 'o':
      return (value as bigint).toString(8)
    case 'b':
      return (value as bigint).toString(2)
    default:
      return display(value)
  }
}

function display(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(display).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  if (value instanceof Date) return value.toISOString()
  const entries = Object.entries(value).map(([key, entry]) => `${key}: ${display(entry)}`)
  return `{${entries.sort().join(', ')}}`
}

function compare(a: unknown, b: unknown): number {
  const left = a as bigint
  const right = b as bigint
  return left < right ? -1 : left > right ? 1 : 0
}

function add(a: unknown, b: unknown): unknown {
  return typeof a === 'bigint' && typeof b === 'bigint' ? a + b : Number(a) + Number(b)
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_key, entry: unknown) => (typeof entry === 'bigint' ? `${entry}n` : entry))

function registerLists(environment: Environment): void {
  const extreme = (list: readonly unknown[], sign: number): unknown => {
    if (list.length === 0) throw new Error('min/max called on empty list')
    return list.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best))
  }
  const position = (list: readonly unknown[], item: unknown): bigint =>
    BigInt(list.map(text).indexOf(text(item)))
  environment
    .registerFunction('list.isSorted(): bool', (list: readonly unknown[]) =>
      list.every((item, index) => index === 0 || compare(list[index - 1], item) <= 0),
    )
    .registerFunction('list.sum(): dyn', (list: readonly unknown[]) =>
      list.length === 0 ? 0n : list.slice(1).reduce(add, list[0]),
    )
    .registerFunction('list.min(): dyn', (list: readonly unknown[]) => extreme(list, -1))
    .registerFunction('list.max(): dyn', (list: readonly unknown[]) => extreme(list, 1))
    .registerFunction('list.indexOf(dyn): int', position)
    .registerFunction('list.lastIndexOf(dyn): int', (list: readonly unknown[], item: unknown) =>
      BigInt(list.map(text).lastIndexOf(text(item))),
    )
    .registerFunction('list.distinct(): list', (list: readonly unknown[]) => {
      const seen = new Set<string>()
      return list.filter((item) => !seen.has(text(item)) && seen.add(text(item)))
    })
    .registerFunction('list.reverse(): list', (list: readonly unknown[]) => list.toReversed())
    .registerFunction('list.flatten(): list', (list: readonly unknown[]) => list.flat())
    .registerFunction('list.slice(int, int): list', (list: readonly unknown[], from: bigint, to: bigint) =>
      list.slice(Number(from), Number(to)),
    )
}

function registerSets(environment: Environment): void {
  const contains = (list: readonly unknown[], other: readonly unknown[]): boolean => {
    const known = new Set(list.map(text))
    return other.every((item) => known.has(text(item)))
  }
  environment
    .registerType('kubernetes.Sets', CelSets)
    .registerConstant('sets', 'kubernetes.Sets', new CelSets())
    .registerFunction(
      'kubernetes.Sets.contains(list, list): bool',
      (_sets: CelSets, list: readonly unknown[], other: readonly unknown[]) => contains(list, other),
    )
    .registerFunction(
      'kubernetes.Sets.equivalent(list, list): bool',
      (_sets: CelSets, list: readonly unknown[], other: readonly unknown[]) =>
        contains(list, other) && contains(other, list),
    )
    .registerFunction(
      'kubernetes.Sets.intersects(list, list): bool',
      (_sets: CelSets, list: readonly unknown[], other: readonly unknown[]) => {
        const known = new Set(list.map(text))
        return other.some((item) => known.has(text(item)))
      },
    )
}

function registerUrls(environment: Environment): void {
  const valid = (value: string): boolean => URL.canParse(value) || value.startsWith('/')
  environment
    .registerType('kubernetes.URL', CelUrl)
    .registerFunction('isURL(string): bool', valid)
    .registerFunction('url(string): kubernetes.URL', (value: string) => {
      if (!valid(value)) throw new Error(`URL parse error: ${JSON.stringify(value)} is not a URL`)
      return new CelUrl(value)
    })
    .registerFunction('kubernetes.URL.getScheme(): string', ({ relative, url }: CelUrl) =>
      relative ? '' : url.protocol.slice(0, -1),
    )
    .registerFunction('kubernetes.URL.getHost(): string', ({ relative, url }: CelUrl) =>
      relative ? '' : url.host,
    )
    .registerFunction('kubernetes.URL.getHostname(): string', ({ relative, url }: CelUrl) =>
      relative ? '' : url.hostname.replace(/^\[|\]$/g, ''),
    )
    .registerFunction('kubernetes.URL.getPort(): string', ({ url }: CelUrl) => url.port)
    .registerFunction('kubernetes.URL.getEscapedPath(): string', ({ url }: CelUrl) => url.pathname)
    .registerFunction('isIP(string): bool', (value: string) => isIP(value) !== 0)
    .registerFunction('isCIDR(string): bool', (value: string) => hasFormat('cidr', value))
}

function registerQuantities(environment: Environment): void {
  const quantity = 'kubernetes.Quantity'
  environment
    .registerType(quantity, CelQuantity)
    .registerFunction('isQuantity(string): bool', isQuantity)
    .registerFunction(`quantity(string): ${quantity}`, quantityOf)
    .registerFunction(`${quantity}.isInteger(): bool`, (q: CelQuantity) => q.nanos % nano === 0n)
    .registerFunction(`${quantity}.asInteger(): int`, (q: CelQuantity) => {
      if (q.nanos % nano !== 0n) throw new Error('cannot convert value to integer')
      return q.nanos / nano
    })
    .registerFunction(`${quantity}.asApproximateFloat(): double`, (q: CelQuantity) => Number(q.nanos) / 1e9)
    .registerFunction(`${quantity}.sign(): int`, (q: CelQuantity) => BigInt(compare(q.nanos, 0n)))
    .registerFunction(
      `${quantity}.add(${quantity}): ${quantity}`,
      (a: CelQuantity, b: CelQuantity) => new CelQuantity(a.nanos + b.nanos),
    )
    .registerFunction(
      `${quantity}.add(int): ${quantity}`,
      (a: CelQuantity, b: bigint) => new CelQuantity(a.nanos + b * nano),
    )
    .registerFunction(
      `${quantity}.sub(${quantity}): ${quantity}`,
      (a: CelQuantity, b: CelQuantity) => new CelQuantity(a.nanos - b.nanos),
    )
    .registerFunction(
      `${quantity}.sub(int): ${quantity}`,
      (a: CelQuantity, b: bigint) => new CelQuantity(a.nanos - b * nano),
    )
    .registerFunction(
      `${quantity}.isGreaterThan(${quantity}): bool`,
      (a: CelQuantity, b: CelQuantity) => a.nanos > b.nanos,
    )
    .registerFunction(
      `${quantity}.isLessThan(${quantity}): bool`,
      (a: CelQuantity, b: CelQuantity) => a.nanos < b.nanos,
    )
    .registerFunction(`${quantity}.compareTo(${quantity}): int`, (a: CelQuantity, b: CelQuantity) =>
      BigInt(compare(a.nanos, b.nanos)),
    )
    .registerOperator(`${quantity} == ${quantity}`, (a: CelQuantity, b: CelQuantity) => a.nanos === b.nanos)
}

/** Adds the functions Kubernetes offers to validation rules beyond CEL's own. */
export function registerKubernetesFunctions(environment: Environment): void {
  registerStrings(environment)
  registerLists(environment)
  registerSets(environment)
  registerUrls(environment)
  registerQuantities(environment)
}
