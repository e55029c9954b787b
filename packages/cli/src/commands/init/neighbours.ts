/** Finds the next smaller and next larger instance types. */
import {
  comparePrices,
  type InstanceType,
  labels,
  lowestPrice,
  ownValue,
  type PricePerHour,
} from '@tenon/api'

/** Resources that every type has. Others, such as GPUs, distinguish kinds of types. */
const common: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods'])

/** A type and its neighbours, from small to large; the type alone if it is not in the catalogue. */
export function withNeighbours(name: string, types: readonly InstanceType[]): readonly string[] {
  const type = types.find((each) => each.name === name)
  if (type === undefined || !isSized(type)) return [name]
  const alike = types.filter((each) => each.name !== name && isSized(each) && isAlike(each, type))
  const smaller = nearest(
    type,
    alike.filter((each) => isWithin(each, type)),
  )
  const larger = nearest(
    type,
    alike.filter((each) => isWithin(type, each)),
  )
  return [smaller, type, larger].flatMap((each) => (each === undefined ? [] : [each.name]))
}

function isSized({ capacity }: InstanceType): boolean {
  return (ownValue(capacity, 'cpu') ?? 0) > 0 && (ownValue(capacity, 'memory') ?? 0) > 0
}

/** Same architecture, operating system and kinds of devices. */
function isAlike(a: InstanceType, b: InstanceType): boolean {
  const kindOf = ({ requirements, capacity }: InstanceType) =>
    JSON.stringify([
      ...[labels.arch, labels.os].map((key) =>
        requirements.filter((each) => each.key === key).flatMap(({ values = [] }) => values.toSorted()),
      ),
      devicesOf(capacity).toSorted(),
    ])
  return kindOf(a) === kindOf(b)
}

function devicesOf(capacity: InstanceType['capacity']): readonly string[] {
  return Object.keys(capacity).filter((name) => !common.has(name) && (ownValue(capacity, name) ?? 0) > 0)
}

/** Resources to compare. */
function sizesOf({ capacity }: InstanceType): readonly string[] {
  return ['cpu', 'memory', ...devicesOf(capacity)]
}

/** Whether `a` is smaller than `b` in some resource and larger in none. */
function isWithin(a: InstanceType, b: InstanceType): boolean {
  const of = (type: InstanceType, name: string) => ownValue(type.capacity, name) ?? 0
  const names = sizesOf(b)
  return names.every((name) => of(a, name) <= of(b, name)) && names.some((name) => of(a, name) < of(b, name))
}

function nearest(type: InstanceType, others: readonly InstanceType[]): InstanceType | undefined {
  return others.toSorted(
    (a, b) =>
      Number(isOfFamily(b, type)) - Number(isOfFamily(a, type)) ||
      ratioDistance(a, type) - ratioDistance(b, type) ||
      distance(a, type) - distance(b, type) ||
      comparePrices(priceOf(a), priceOf(b)) ||
      (a.name < b.name ? -1 : 1),
  )[0]
}

/** Number of doublings of a resource between two types. */
function distance(a: InstanceType, b: InstanceType): number {
  const sizes = sizesOf(b).map((name) =>
    Math.abs(Math.log2((ownValue(a.capacity, name) ?? 1) / (ownValue(b.capacity, name) ?? 1))),
  )
  return sizes.reduce((sum, each) => sum + each, 0)
}

/** Difference of the ratio of memory to CPU, in hundredths of a doubling. */
function ratioDistance(a: InstanceType, b: InstanceType): number {
  const ratio = ({ capacity }: InstanceType) =>
    Math.log2((ownValue(capacity, 'memory') ?? 1) / (ownValue(capacity, 'cpu') ?? 1))
  return Math.round(100 * Math.abs(ratio(a) - ratio(b)))
}

function isOfFamily(a: InstanceType, b: InstanceType): boolean {
  return familyOf(a.name) === familyOf(b.name)
}

/** The part before the size, in names such as `standard.large`. */
function familyOf(name: string): string {
  return name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : ''
}

/** Of the cheapest offering. */
export function priceOf({ offerings }: InstanceType): PricePerHour {
  return lowestPrice(offerings.map(({ pricePerHour }) => pricePerHour))
}
