/** What taking a node away asks of its pods, worked out once for each state of these (disruption.md 3, 4). */
import { annotations, type Pod, type PodDisruptionBudget } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import { type Caches, indexes } from '../observe/caches.ts'
import { type BlockingBudgets, blockingBudgets } from './pod-budgets.ts'
import { costsSomething, evictionCost, isCurrentlyReschedulable, isReschedulable } from './pods.ts'

/** The pods of a node; where nothing else is said, without those that cannot be read. */
export interface PodsToMove {
  /** Pods that say for how long they must not be disrupted, or say it in a way that nobody can read. */
  readonly annotated: readonly Pod[]
  /** The PDBs that hold the first pod that is held, if any. */
  readonly blocking: BlockingBudgets | undefined
  /** Pods that need another place when the node goes. */
  readonly pods: readonly Pod[]
  /** Those of them that nothing keeps where they are. */
  readonly movable: readonly Pod[]
  /** What moving them costs; 1 when nothing costs anything. */
  readonly disruptionCost: number
  /** Whether no pod costs anything to move, not even one that cannot be read. */
  readonly isCheap: boolean
}

/** Asked about every node in every pass of the disruption loop, while few nodes change in between. */
export class PodsOnNodes {
  readonly #caches: Pick<Caches, 'pods' | 'podDisruptionBudgets'>
  readonly #isWellFormed: (pod: Pod) => boolean
  readonly #clock: Pick<Clock, 'now'>
  /** By Node name; an entry goes with the first change to a pod of the node or to a PDB. */
  readonly #known = new Map<string, PodsToMove>()
  #budgets: readonly PodDisruptionBudget[] | undefined

  constructor(
    caches: Pick<Caches, 'pods' | 'podDisruptionBudgets'>,
    isWellFormed: (pod: Pod) => boolean,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#caches = caches
    this.#isWellFormed = isWellFormed
    this.#clock = clock
    caches.pods.onChange((change) => {
      this.#known.delete(nodeNameOf(change.object))
      if (change.kind === 'updated') this.#known.delete(nodeNameOf(change.old))
    })
    caches.podDisruptionBudgets.onChange(() => {
      this.#budgets = undefined
      this.#known.clear()
    })
  }

  /** All PDBs; the same list until one of them changes. */
  budgets(): readonly PodDisruptionBudget[] {
    this.#budgets ??= this.#caches.podDisruptionBudgets.list()
    return this.#budgets
  }

  of(nodeName: string): PodsToMove {
    const known = this.#known.get(nodeName)
    if (known !== undefined) return known
    const all = this.#caches.pods.byIndex(indexes.byNode, nodeName)
    const found = this.#read(all)
    // Annotations may hold for a time only; and nodes without pods would stay here when they are gone.
    if (found.annotated.length === 0 && all.length > 0) this.#known.set(nodeName, found)
    return found
  }

  #read(all: readonly Pod[]): PodsToMove {
    const pods = all.filter((pod) => this.#isWellFormed(pod))
    const budgets = this.budgets()
    const nowMs = this.#clock.now()
    const reschedulable = pods.filter(isReschedulable)
    return {
      annotated: pods.filter(
        ({ metadata }) => metadata.annotations?.[annotations.doNotDisrupt] !== undefined,
      ),
      blocking: blockingBudgets(pods, budgets, nowMs),
      pods: reschedulable,
      movable: reschedulable.filter((pod) => isCurrentlyReschedulable(pod, budgets, nowMs)),
      disruptionCost: reschedulable.reduce((sum, pod) => sum + Math.max(0, evictionCost(pod)), 1),
      isCheap: !all.some(costsSomething),
    }
  }

  /** Works out in steps what {@link of} answers about these nodes. */
  *reading(nodeNames: Iterable<string>): Generator<undefined, void, undefined> {
    for (const name of nodeNames) {
      this.of(name)
      yield
    }
  }
}

/** Empty while it has none; of pods that cannot be read, too. */
function nodeNameOf(pod: Pod): string {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return spec?.nodeName ?? ''
}
