/**
 * Claims with as many pods of one spread constraint as can be nominated at the same time (planned-placement.md).
 */
import { labels, type LabelSelector, matchesSelector, normalizedLabel } from '@tenon/api'
import type { CompiledProblem } from '../compiled-problem.ts'
import type { PodShape } from './pod-shape.ts'

/** The pods that a DoNotSchedule spread constraint counts. */
interface SpreadPods {
  readonly selector: LabelSelector
  readonly namespace: string
  readonly maxSkew: number
  /** Whether it counts a shape, by index of the shape. */
  readonly known: (boolean | undefined)[]
}

/**
 * kube-scheduler counts nominated pods as if they ran on their node. So no more pods of a spread constraint than its
 * `maxSkew` allows can be nominated for one node at a time, and the room of the other pods is not protected until then.
 */
export class Crowding {
  readonly #compiled: Pick<CompiledProblem, 'shapeOf'>
  readonly #mates: (readonly SpreadPods[] | undefined)[] = []

  constructor(compiled: Pick<CompiledProblem, 'shapeOf'>) {
    this.#compiled = compiled
  }

  /** Whether the shape has such a constraint. */
  concerns(shape: PodShape): boolean {
    return this.#spreadPodsOf(shape).length > 0
  }

  /** Whether one more pod of the shape could only be nominated after some of these pods are bound. */
  isCrowded(pods: readonly number[], shape: PodShape): boolean {
    return this.#spreadPodsOf(shape).some((mates) => {
      let count = 0
      for (const pod of pods) {
        if (this.#isMate(mates, this.#compiled.shapeOf(pod))) count++
        if (count >= mates.maxSkew) return true
      }
      return false
    })
  }

  #isMate({ selector, namespace, known }: SpreadPods, { index, selectable }: PodShape): boolean {
    return (known[index] ??=
      selectable.namespace === namespace && matchesSelector(selector, selectable.labels))
  }

  /** Constraints over hosts are left out, as they never allow more pods on a node than `maxSkew` anyway. */
  #spreadPodsOf(shape: PodShape): readonly SpreadPods[] {
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
