/** Which claims hold so many pods that must spread that the scheduler cannot be told of more (planned-placement.md). */
import { labels, type LabelSelector, matchesSelector, normalizedLabel } from '@tenon/api'
import type { PodShape } from './pod-shape.ts'

/** Pods that count together for a spread that some shape insists on. */
interface Mates {
  readonly selector: LabelSelector
  readonly namespace: string
  readonly maxSkew: number
  /** Whether a shape is among them, by its index. */
  readonly known: (boolean | undefined)[]
}

/**
 * The scheduler counts the pods nominated for a node as if they ran there. Of pods that spread, no more than the skew
 * allows can be nominated for one node at a time, and nothing keeps the room of the others until it is their turn.
 */
export class Crowding {
  readonly #shapeOf: (pod: number) => PodShape
  readonly #mates: (readonly Mates[] | undefined)[] = []

  constructor(shapeOf: (pod: number) => PodShape) {
    this.#shapeOf = shapeOf
  }

  /** Whether pods of this shape can be crowded at all. */
  concerns(shape: PodShape): boolean {
    return this.#matesOf(shape).length > 0
  }

  /** Whether one more pod of the shape would have to wait for those that are there. */
  isCrowded(pods: readonly number[], shape: PodShape): boolean {
    return this.#matesOf(shape).some((mates) => {
      let count = 0
      for (const pod of pods) {
        if (this.#isMate(mates, this.#shapeOf(pod))) count++
        if (count >= mates.maxSkew) return true
      }
      return false
    })
  }

  #isMate({ selector, namespace, known }: Mates, { index, selectable }: PodShape): boolean {
    return (known[index] ??=
      selectable.namespace === namespace && matchesSelector(selector, selectable.labels))
  }

  /** A spread over single nodes puts no more pods on a node than its skew allows anyway. */
  #matesOf(shape: PodShape): readonly Mates[] {
    return (this.#mates[shape.index] ??= (shape.spec.topologySpreadConstraints ?? []).flatMap(
      ({ whenUnsatisfiable, topologyKey, labelSelector, maxSkew }) => {
        if (whenUnsatisfiable !== 'DoNotSchedule' || normalizedLabel(topologyKey) === labels.hostname)
          return []
        const { namespace, labels: own } = shape.selectable
        if (labelSelector === undefined || !matchesSelector(labelSelector, own)) return []
        return [{ selector: labelSelector, namespace, maxSkew, known: [] }]
      },
    ))
  }
}
