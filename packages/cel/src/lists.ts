import { type Environment, Optional } from '@marcbachmann/cel-js'
import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator'
import { celCompare, celEquals } from './equality.ts'
import { ownName } from './own-functions.ts'

/** The receiver of `lists.range`. */
class CelLists {
  readonly name = 'lists'
}

/** The receiver of `sets.contains` and similar functions. */
class CelSets {
  readonly name = 'sets'
}

type List = readonly unknown[]

const longestRange = 1_000_000n

function range(length: bigint): bigint[] {
  if (length > longestRange) throw new Error(`lists.range: ${length} is too long`)
  return Array.from({ length: Math.max(0, Number(length)) }, (_, index) => BigInt(index))
}

function extreme(list: List, name: 'min' | 'max'): unknown {
  if (list.length === 0) throw new Error(`${name} called on empty list`)
  const sign = name === 'max' ? 1 : -1
  return list.reduce((best, item) => (celCompare(item, best) * sign > 0 ? item : best))
}

function add(a: unknown, b: unknown): unknown {
  if (typeof a === 'bigint' && typeof b === 'bigint') return a + b
  if (typeof a === 'number' && typeof b === 'number') return a + b
  if (a instanceof UnsignedInt && b instanceof UnsignedInt) return new UnsignedInt(a.valueOf() + b.valueOf())
  if (a instanceof Duration && b instanceof Duration) return a.addDuration(b)
  throw new Error('no such overload')
}

function lastIndexOf(list: List, item: unknown): bigint {
  return BigInt(list.findLastIndex((one) => celEquals(one, item)))
}

function distinct(list: List): unknown[] {
  const found: unknown[] = []
  for (const item of list) if (!found.some((one) => celEquals(one, item))) found.push(item)
  return found
}

function flatten(list: List, depth: bigint): unknown[] {
  if (depth < 0n) throw new Error('level must be non-negative')
  return list.flatMap((item) =>
    Array.isArray(item) && depth > 0n ? flatten(item as List, depth - 1n) : [item],
  )
}

function slice(list: List, start: bigint, end: bigint): List {
  const failed = (words: string) => new Error(`cannot slice(${start}, ${end}), ${words}`)
  if (start < 0n || end < 0n) throw failed('negative indexes not supported')
  if (start > end) throw failed('start index must be less than or equal to end index')
  if (end > BigInt(list.length)) throw failed(`list is length ${list.length}`)
  return list.slice(Number(start), Number(end))
}

export function sortedBy(list: List, keys: List): List {
  const types = new Set(keys.map((key) => (typeof key === 'object' ? key?.constructor : typeof key)))
  if (types.size > 1) throw new Error('list elements must have the same type')
  const ordered = list.map((item, index) => ({ item, key: keys[index] }))
  if (ordered.length === 1) celCompare(keys[0], keys[0])
  return ordered.sort((a, b) => celCompare(a.key, b.key)).map(({ item }) => item)
}

const summed: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['int', 0n],
  ['uint', new UnsignedInt(0)],
  ['double', 0],
  ['google.protobuf.Duration', new Duration(0)],
])
const ordered = [...summed.keys(), 'bool', 'google.protobuf.Timestamp', 'string', 'bytes']

/** Functions of lists whose items can be ordered. */
function registerOrder(environment: Environment): void {
  for (const type of ordered) {
    environment
      .registerFunction(`list<${type}>.isSorted(): bool`, (list: List) =>
        list.every((item, index) => index === 0 || celCompare(list[index - 1], item) <= 0),
      )
      .registerFunction(`list<${type}>.min(): ${type}`, (list: List) => extreme(list, 'min'))
      .registerFunction(`list<${type}>.max(): ${type}`, (list: List) => extreme(list, 'max'))
      .registerFunction(`list<${type}>.sort(): list<${type}>`, (list: List) => sortedBy(list, list))
  }
  for (const [type, zero] of summed) {
    environment.registerFunction(`list<${type}>.sum(): ${type}`, (list: List) => list.reduce(add, zero))
  }
}

export function registerLists(environment: Environment): void {
  registerOrder(environment)
  environment
    .registerFunction(`list.${ownName('indexOf')}(dyn): int`, (list: List, item: unknown) =>
      BigInt(list.findIndex((one) => celEquals(one, item))),
    )
    .registerFunction(`list.${ownName('lastIndexOf')}(dyn): int`, lastIndexOf)
    .registerFunction('list<A>.distinct(): list<A>', distinct)
    .registerFunction('list<A>.reverse(): list<A>', (list: List) => list.toReversed())
    .registerFunction('list.flatten(): list', (list: List) => flatten(list, 1n))
    .registerFunction('list.flatten(int): list', flatten)
    .registerFunction('list<A>.slice(int, int): list<A>', slice)
    .registerFunction('list<A>.first(): optional<A>', (list: List) =>
      list.length === 0 ? Optional.none() : Optional.of(list[0]),
    )
    .registerFunction('list<A>.last(): optional<A>', (list: List) =>
      list.length === 0 ? Optional.none() : Optional.of(list.at(-1)),
    )
    .registerType('kubernetes.Lists', CelLists)
    .registerConstant('lists', 'kubernetes.Lists', new CelLists())
    .registerFunction('kubernetes.Lists.range(int): list<int>', (_lists: CelLists, length: bigint) =>
      range(length),
    )
}

export function registerSets(environment: Environment): void {
  const isIn = (list: List, item: unknown): boolean => list.some((one) => celEquals(one, item))
  const contains = (list: List, other: List): boolean => other.every((item) => isIn(list, item))
  environment
    .registerType('kubernetes.Sets', CelSets)
    .registerConstant('sets', 'kubernetes.Sets', new CelSets())
    .registerFunction(
      'kubernetes.Sets.contains(list, list): bool',
      (_sets: CelSets, list: List, other: List) => contains(list, other),
    )
    .registerFunction(
      'kubernetes.Sets.equivalent(list, list): bool',
      (_sets: CelSets, list: List, other: List) => contains(list, other) && contains(other, list),
    )
    .registerFunction(
      'kubernetes.Sets.intersects(list, list): bool',
      (_sets: CelSets, list: List, other: List) => other.some((item) => isIn(list, item)),
    )
}
