/** Indexes of topology groups and pods by label, so that not all pairs must be tried. */
import { ownValue } from '@tenon/api'
import type { SelectablePod } from '../problem/problem.ts'
import type { TopologyGroup } from './group.ts'

/**
 * Groups by one label that their selector requires. Most of the thousands of groups in a large cluster select one application
 * each, so few groups share a label with a pod.
 */
export class GroupIndex {
  readonly #all: TopologyGroup[] = []
  /** Positions by namespace and label. */
  readonly #byLabel = new Map<string, number[]>()
  /** Positions of groups that require no certain label. */
  readonly #others: number[] = []
  readonly #known: KnownValues

  /** @param known the label values of all pods. */
  constructor(known: KnownValues) {
    this.#known = known
  }

  get size(): number {
    return this.#all.length
  }

  add(group: TopologyGroup): void {
    const position = this.#all.push(group) - 1
    const keys = demandedLabels(group, this.#known)
    if (keys === undefined) {
      this.#others.push(position)
      return
    }
    for (const key of keys) {
      const positions = this.#byLabel.get(key)
      if (positions === undefined) this.#byLabel.set(key, [position])
      else positions.push(position)
    }
  }

  /** The groups that select the pod, in the order in which they were added. */
  selecting(pod: SelectablePod): readonly TopologyGroup[] {
    const positions = [...this.#others]
    for (const label in pod.labels)
      for (const position of this.#byLabel.get(
        keyOf(pod.namespace, label, ownValue(pod.labels, label) as string),
      ) ?? [])
        positions.push(position)
    return positions
      .toSorted((a, b) => a - b)
      .map((position) => this.#all[position] as TopologyGroup)
      .filter((group) => group.selects(pod))
  }
}

/** Pods by label. */
export class PodIndex {
  readonly #count: number
  readonly #byLabel = new Map<string, number[]>()
  readonly #known: KnownValues

  constructor(pods: readonly SelectablePod[], known: KnownValues) {
    this.#known = known
    this.#count = pods.length
    for (const [index, { namespace, labels }] of pods.entries()) {
      for (const label in labels) {
        const key = keyOf(namespace, label, ownValue(labels, label) as string)
        const indexes = this.#byLabel.get(key)
        if (indexes === undefined) this.#byLabel.set(key, [index])
        else indexes.push(index)
      }
    }
  }

  /** Indexes of pods with the label that the group's selector requires; the rest of the selector is not checked. */
  *candidates(group: TopologyGroup): Iterable<number> {
    const keys = demandedLabels(group, this.#known)
    if (keys === undefined) for (let index = 0; index < this.#count; index++) yield index
    else for (const key of keys) yield* this.#byLabel.get(key) ?? []
  }
}

/** Labels of which a selected pod has at least one; undefined when the group requires no certain label. */
function demandedLabels({ rule }: TopologyGroup, known: KnownValues): readonly string[] | undefined {
  const { matchLabels = {}, matchExpressions = [] } = rule.selector ?? {}
  const [label] = Object.entries(matchLabels)
  const keysOf = (key: string, values: readonly string[]) =>
    [...rule.namespaces].flatMap((namespace) => values.map((value) => keyOf(namespace, key, value)))
  if (label !== undefined) return keysOf(label[0], [label[1]])
  const listed = matchExpressions.find(({ operator, values }) => operator === 'In' && values !== undefined)
  if (listed === undefined) return undefined
  // A selector may list thousands of values that no pod has.
  const values = known.get(listed.key)
  return keysOf(
    listed.key,
    values === undefined ? [] : [...new Set(listed.values)].filter((value) => values.has(value)),
  )
}

/** The label values of pods, by key. */
export type KnownValues = ReadonlyMap<string, ReadonlySet<string>>

export function knownValues(pods: Iterable<SelectablePod>): KnownValues {
  const known = new Map<string, Set<string>>()
  for (const { labels } of pods)
    for (const key in labels) {
      const values = known.get(key)
      const value = ownValue(labels, key) as string
      if (values === undefined) known.set(key, new Set([value]))
      else values.add(value)
    }
  return known
}

function keyOf(namespace: string, label: string, value: string): string {
  return `${namespace}\n${label}\n${value}`
}
