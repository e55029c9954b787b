/** One label key and the values it may take (scheduling.md 4). */
import { normalizedLabel, type Requirement, type RequirementOperator } from '@tenon/api'

const maxInt64 = 9_223_372_036_854_775_807n
const minInt64 = -maxInt64 - 1n

/** The allowed values of a label key: those listed, or all but those listed, within integer bounds. */
export interface ValueSet {
  readonly key: string
  /** True if `values` are excluded instead of allowed. */
  readonly complement: boolean
  readonly values: ReadonlySet<string>
  readonly gte?: bigint
  readonly lte?: bigint
  /** The fewest distinct values that must remain available. */
  readonly minValues?: number
  /**
   * Set where the label must exist although the values alone would allow its absence: after `In` was
   * intersected, or `Exists` was combined with exclusions.
   */
  readonly required?: true
}

const none: ReadonlySet<string> = new Set()

/**
 * The value set of a requirement; its key is normalised. A bound that is not a 64-bit integer matches
 * nothing, not even a node without the label. Bounds beyond 64 bits give `DoesNotExist`, without minValues.
 */
export function valueSet(requirement: Requirement): ValueSet {
  const key = normalizedLabel(requirement.key)
  const minValues = requirement.minValues === undefined ? {} : { minValues: requirement.minValues }
  const values = requirement.values ?? []
  switch (requirement.operator) {
    case 'In':
      return { key, complement: false, values: new Set(values), ...minValues }
    case 'NotIn':
      return { key, complement: true, values: new Set(values), ...minValues }
    case 'Exists':
      return { key, complement: true, values: none, ...minValues }
    case 'DoesNotExist':
      return { key, complement: false, values: none, ...minValues }
    case 'Gt':
    case 'Gte':
    case 'Lt':
    case 'Lte':
      return bounded(key, requirement.operator, values, minValues)
  }
}

function bounded(
  key: string,
  operator: 'Gt' | 'Gte' | 'Lt' | 'Lte',
  values: readonly string[],
  minValues: { readonly minValues?: number },
): ValueSet {
  const given = values.length === 1 ? parseInteger(values[0] ?? '') : undefined
  // An empty range rather than DoesNotExist, which nodes without the label would satisfy.
  if (given === undefined) return { key, complement: true, values: none, gte: 1n, lte: 0n, ...minValues }
  const end = given + (operator === 'Gt' ? 1n : operator === 'Lt' ? -1n : 0n)
  if (end > maxInt64 || end < minInt64) return { key, complement: false, values: none }
  const bound = operator === 'Gt' || operator === 'Gte' ? { gte: end } : { lte: end }
  return { key, complement: true, values: none, ...bound, ...minValues }
}

/** The 64-bit integer in `text`, with or without a sign. */
function parseInteger(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined
  const number = BigInt(text)
  return number > maxInt64 || number < minInt64 ? undefined : number
}

/** Allows exactly these values. */
export function oneOf(key: string, ...values: readonly string[]): ValueSet {
  return { key: normalizedLabel(key), complement: false, values: new Set(values) }
}

/** The operator of a set; an empty intersection is `DoesNotExist`. */
export function operatorOf(set: ValueSet): RequirementOperator {
  if (set.complement) return set.values.size > 0 ? 'NotIn' : 'Exists'
  return set.values.size > 0 ? 'In' : 'DoesNotExist'
}

/** Whether a node without the label matches, as for `NotIn` and `DoesNotExist`. */
export function allowsAbsence(set: ValueSet): boolean {
  return set.required !== true && set.complement === set.values.size > 0
}

export function has(set: ValueSet, value: string): boolean {
  return set.values.has(value) !== set.complement && isWithin(set.gte, set.lte, value)
}

function isWithin(gte: bigint | undefined, lte: bigint | undefined, value: string): boolean {
  if (gte === undefined && lte === undefined) return true
  const number = parseInteger(value)
  if (number === undefined) return false
  return (gte === undefined || number >= gte) && (lte === undefined || number <= lte)
}

function larger<T extends bigint | number>(a: T | undefined, b: T | undefined): T | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a > b ? a : b
}

function smaller(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a < b ? a : b
}

export function intersection(a: ValueSet, b: ValueSet): ValueSet {
  if (a === b) return a
  const gte = larger(a.gte, b.gte)
  const lte = smaller(a.lte, b.lte)
  const least = larger(a.minValues, b.minValues)
  const minValues = least === undefined ? {} : { minValues: least }
  const isRequired = !allowsAbsence(a) || !allowsAbsence(b)
  if (gte !== undefined && lte !== undefined && gte > lte)
    return withPresence({ key: a.key, complement: false, values: none, ...minValues }, isRequired)
  const values = new Set([...combined(a, b)].filter((value) => isWithin(gte, lte, value)))
  if (!(a.complement && b.complement))
    return withPresence({ key: a.key, complement: false, values, ...minValues }, isRequired)
  const bounds = { ...(gte !== undefined && { gte }), ...(lte !== undefined && { lte }) }
  return withPresence({ key: a.key, complement: true, values, ...bounds, ...minValues }, isRequired)
}

/** Keeps `required` if the intersected values would lose it. */
function withPresence(set: ValueSet, isRequired: boolean): ValueSet {
  return isRequired && allowsAbsence(set) ? { ...set, required: true } : set
}

function combined(a: ValueSet, b: ValueSet): Iterable<string> {
  if (a.complement && b.complement) return [...a.values, ...b.values]
  if (a.complement) return [...b.values].filter((value) => !a.values.has(value))
  if (b.complement) return [...a.values].filter((value) => !b.values.has(value))
  return [...a.values].filter((value) => b.values.has(value))
}

/** Like {@link intersection}, but only tells whether it allows any value. */
export function intersects(a: ValueSet, b: ValueSet): boolean {
  const gte = larger(a.gte, b.gte)
  const lte = smaller(a.lte, b.lte)
  if (gte !== undefined && lte !== undefined && gte > lte) return false
  if (a.complement && b.complement) return true
  const [listed, other] = a.complement ? [b, a] : [a, b]
  for (const value of listed.values) {
    if (other.values.has(value) !== other.complement && isWithin(gte, lte, value)) return true
  }
  return false
}

/** The values that both allow; undefined if neither is given. */
export function both(a: ValueSet | undefined, b: ValueSet | undefined): ValueSet | undefined {
  return a === undefined ? b : b === undefined ? a : intersection(a, b)
}

/**
 * One allowed value: the smallest listed one, or the smallest integer of 0 or more within the bounds (a label
 * value cannot begin with a minus sign); undefined if there is none.
 */
export function anyValue(set: ValueSet): string | undefined {
  if (!set.complement) return [...set.values].toSorted()[0]
  const end = set.lte ?? maxInt64
  // Short whatever the range: only excluded values are skipped.
  for (let value = larger(set.gte, 0n) ?? 0n; value <= end; value++) {
    if (!set.values.has(value.toString())) return value.toString()
  }
  return undefined
}

/** As requirements: bounds become `Gte`/`Lte`, and exclusions in addition to bounds a `NotIn`. */
export function toRequirements(set: ValueSet): readonly Requirement[] {
  const minValues = set.minValues === undefined ? {} : { minValues: set.minValues }
  const bounds: Requirement[] = []
  if (set.gte !== undefined)
    bounds.push({ key: set.key, operator: 'Gte', values: [set.gte.toString()], ...minValues })
  if (set.lte !== undefined)
    bounds.push({ key: set.key, operator: 'Lte', values: [set.lte.toString()], ...minValues })
  if (bounds.length > 0 && set.values.size === 0) return bounds
  const operator = operatorOf(set)
  const values = set.values.size > 0 ? { values: [...set.values].toSorted() } : {}
  const isPresent = set.required === true && operator === 'NotIn' && bounds.length === 0
  const presence: Requirement[] = isPresent ? [{ key: set.key, operator: 'Exists', ...minValues }] : []
  return [...presence, ...bounds, { key: set.key, operator, ...values, ...minValues }]
}

/** As text for users, such as `key In [a b]`; more than five values are shortened. */
export function renderValueSet(set: ValueSet): string {
  const operator = operatorOf(set)
  const sorted = [...set.values].toSorted()
  const shown = sorted.slice(0, 5).join(' ') + (sorted.length > 5 ? ` and ${sorted.length - 5} others` : '')
  const list = operator === 'In' || operator === 'NotIn' ? ` [${shown}]` : ''
  const low = set.gte === undefined ? '' : ` >=${set.gte}`
  const high = set.lte === undefined ? '' : ` <=${set.lte}`
  const least = set.minValues === undefined ? '' : ` minValues ${set.minValues}`
  return `${set.key} ${operator}${list}${low}${high}${least}`
}
