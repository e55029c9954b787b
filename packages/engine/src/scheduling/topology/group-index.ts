/** Finds which groups select which pods without trying all of them. */
import { ownValue } from '@tenon/api'
import type { SelectablePod } from '../../input/problem.ts'
import type { TopologyGroup } from './group.ts'

/**
 * Groups by one label that their selector demands. Of the thousands of groups in a large cluster most
 * are about one application each, so few of them share a label with a pod.
 */
export class GroupIndex {
  readonly #all: TopologyGroup[] = []
  /** Positions by namespace and label. */
  readonly #byLabel = new Map<string, number[]>()
  /** Positions of groups that demand no certain label. */
  readonly #others: number[] = []

  get size(): number {
    return this.#all.length
  }

  add(group: TopologyGroup): void {
    const position = this.#all.push(group) - 1
    const [label] = Object.entries(group.rule.selector?.matchLabels ?? {})
    if (label === undefined) {
      this.#others.push(position)
      return
    }
    for (const namespace of group.rule.namespaces) {
      const key = keyOf(namespace, label[0], label[1])
      const positions = this.#byLabel.get(key)
      if (positions === undefined) this.#byLabel.set(key, [position])
      else positions.push(position)
    }
  }

  /** The groups that select the pod, in the order in which they were added. */
  selecting(pod: SelectablePod): readonly TopologyGroup[] {
    const positions = [...this.#others]
    for (const label in pod.labels)
      positions.push(
        ...(this.#byLabel.get(keyOf(pod.namespace, label, ownValue(pod.labels, label) as string)) ?? []),
      )
    return positions
      .toSorted((a, b) => a - b)
      .map((position) => this.#all[position] as TopologyGroup)
      .filter((group) => group.selects(pod))
  }
}

/** Finds the pods that a group may select without looking at all of them. */
export class PodIndex {
  readonly #count: number
  readonly #byLabel = new Map<string, number[]>()

  constructor(pods: readonly SelectablePod[]) {
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

  /** Indexes of pods that have what the group's selector demands first; the rest of it is not looked at. */
  *candidates({ rule }: TopologyGroup): Iterable<number> {
    const [label] = Object.entries(rule.selector?.matchLabels ?? {})
    if (label === undefined) for (let index = 0; index < this.#count; index++) yield index
    else
      for (const namespace of rule.namespaces)
        yield* this.#byLabel.get(keyOf(namespace, label[0], label[1])) ?? []
  }
}

function keyOf(namespace: string, label: string, value: string): string {
  return `${namespace}\n${label}\n${value}`
}
