/** Where the last decision put pods. */
import type { Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'

/** What counts of a decision. */
export type Decided = Pick<SchedulingResult, 'placements' | 'claims' | 'deferred' | 'failures'>

export class DecidedPods {
  /** By UID of a pod the node that the last decision put it on; undefined where it knows none for the pod. */
  #decided: ReadonlyMap<string, string | undefined> = new Map()

  /** Notes on which of the nodes that there are a decision put pods, and for which pods it knows none. */
  note({ placements, claims, deferred, failures }: Decided): void {
    const elsewhere = [
      ...[...claims, ...deferred.map(({ claim }) => claim)].flatMap(({ pods }) => pods),
      ...failures.map(({ pod }) => pod),
    ]
    this.#decided = new Map([
      ...elsewhere.map(({ metadata }): [string, undefined] => [metadata.uid ?? '', undefined]),
      ...placements.map(({ pod, node }): [string, string] => [pod.metadata.uid ?? '', node]),
    ])
  }

  /** Whether the decision was about the pod. */
  has(uid: string): boolean {
    return this.#decided.has(uid)
  }

  /** The node that the pod was put on; undefined when there was none, or no decision. */
  nodeOf(uid: string): string | undefined {
    return this.#decided.get(uid)
  }

  /** Whether the decision was about each of the pods and put none on the node. */
  areElsewhere(pods: readonly Pod[], node: string): boolean {
    return pods.every(({ metadata: { uid = '' } }) => this.has(uid) && this.nodeOf(uid) !== node)
  }
}
