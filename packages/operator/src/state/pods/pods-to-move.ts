/** What taking a node away asks of its pods, worked out once for each state of these (disruption.md 3, 4). */
import { annotations, type Pod, type PodDisruptionBudget } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { type Caches, indexes } from '../caches.ts'
import { type BlockingBudgets, blockingBudgets } from './pod-budgets.ts'
import type { StateNode } from '../nodes/state-node.ts'
import { evictionCost, isCurrentlyReschedulable, isReschedulable } from './pods.ts'

/** The pods of a node; where nothing else is said, without those that cannot be read. */
export interface PodsToMove {
  /** Pods that say for how long they must not be disrupted, or say it in a way that nobody can read. */
  readonly annotated: readonly Pod[]
  /** The PDBs that hold the first pod that is held, if any. */
  readonly blocking: BlockingBudgets | undefined
  /** Pods that need another place when the node goes; those that are about to come, too. */
  readonly pods: readonly Pod[]
  /** Those of them that nothing keeps where they are. */
  readonly movable: readonly Pod[]
  /** What moving them costs; 1 when nothing costs anything. */
  readonly disruptionCost: number
  /** Whether there is no pod to move on it, not even one that cannot be read; what moving costs does not matter. */
  readonly isEmpty: boolean
}

/** What is known of pods beside the cache. */
export interface PodFacts {
  readonly isWellFormed: (pod: Pod) => boolean
  /** Whether a change leaves what the pod takes of its node as it is. */
  readonly takesTheSame: (change: Change<Pod>) => boolean
  /** Pods that are nominated to a node and have yet to come. */
  readonly arrivingAt: (nodeName: string) => readonly Pod[]
}

/** Asked about every node in every pass of the disruption loop, while few nodes change in between. */
export class PodsOnNodes {
  readonly #caches: Pick<Caches, 'pods' | 'podDisruptionBudgets'>
  readonly #facts: PodFacts
  readonly #clock: Pick<Clock, 'now'>
  /** By Node name; an entry goes with the first change to a pod of the node or to a PDB. */
  readonly #known = new Map<string, PodsToMove>()
  #budgets: readonly PodDisruptionBudget[] | undefined
  #version = 0
  /** Of which nodes all was known last, and when. */
  #whole: { readonly nodes: readonly StateNode[]; readonly version: number } | undefined

  constructor(
    caches: Pick<Caches, 'pods' | 'podDisruptionBudgets'>,
    facts: PodFacts,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#caches = caches
    this.#facts = facts
    this.#clock = clock
    caches.pods.onChange((change) => {
      if (change.kind === 'updated' && this.#movesTheSame(change)) {
        this.#replace(change.old, change.object)
        return
      }
      this.#version++
      this.#known.delete(nodeNameOf(change.object))
      if (change.kind === 'updated') this.#known.delete(nodeNameOf(change.old))
    })
    caches.podDisruptionBudgets.onChange(() => {
      this.#version++
      this.#budgets = undefined
      this.#known.clear()
    })
  }

  /** Whether a change of a pod is none to those who would move it: most tell only how it fares. */
  #movesTheSame(change: Change<Pod> & { readonly kind: 'updated' }): boolean {
    const [before, after] = [change.old.metadata, change.object.metadata]
    return (
      this.#facts.takesTheSame(change) &&
      before.uid === after.uid &&
      before.labels === after.labels &&
      before.annotations === after.annotations &&
      before.deletionTimestamp === after.deletionTimestamp &&
      readinessOf(change.old) === readinessOf(change.object)
    )
  }

  /** So that nobody is answered with a pod as it was. */
  #replace(old: Pod, pod: Pod): void {
    const name = nodeNameOf(pod)
    const known = this.#known.get(name)
    if (known === undefined) return
    const now = (pods: readonly Pod[]) =>
      pods.includes(old) ? pods.map((each) => (each === old ? pod : each)) : pods
    this.#known.set(name, { ...known, pods: now(known.pods), movable: now(known.movable) })
  }

  /** All PDBs; the same list until one of them changes. */
  budgets(): readonly PodDisruptionBudget[] {
    this.#budgets ??= this.#caches.podDisruptionBudgets.list()
    return this.#budgets
  }

  /** All that PDBs hold of the node's pods, one after the other. */
  *held(nodeName: string): Generator<BlockingBudgets, undefined, undefined> {
    const pods = this.#caches.pods.byIndex(indexes.byNode, nodeName)
    const wellFormed = pods.filter((pod) => this.#facts.isWellFormed(pod))
    yield* blockingBudgets(wellFormed, this.budgets(), this.#clock.now())
  }

  of(nodeName: string): PodsToMove {
    const present = this.#presentOn(nodeName)
    const arriving = this.#facts.arrivingAt(nodeName)
    if (arriving.length === 0) return present
    return {
      ...present,
      pods: [...present.pods, ...arriving],
      movable: [...present.movable, ...arriving],
    }
  }

  #presentOn(nodeName: string): PodsToMove {
    const known = this.#known.get(nodeName)
    if (known !== undefined) return known
    const all = this.#caches.pods.byIndex(indexes.byNode, nodeName)
    const found = this.read(all)
    // Annotations may hold for a time only; and nodes without pods would stay here when they are gone.
    if (found.annotated.length === 0 && all.length > 0) this.#known.set(nodeName, found)
    return found
  }

  /** The same of pods that were read elsewhere. */
  read(all: readonly Pod[]): PodsToMove {
    const budgets = this.budgets()
    const nowMs = this.#clock.now()
    const wellFormed: Pod[] = []
    const annotated: Pod[] = []
    const pods: Pod[] = []
    const movable: Pod[] = []
    let disruptionCost = 1
    let isEmpty = true
    for (const pod of all) {
      const cost = isReschedulable(pod) ? evictionCost(pod) : undefined
      if (cost !== undefined) isEmpty = false
      if (!this.#facts.isWellFormed(pod)) continue
      wellFormed.push(pod)
      if (pod.metadata.annotations?.[annotations.doNotDisrupt] !== undefined) annotated.push(pod)
      if (cost === undefined) continue
      pods.push(pod)
      disruptionCost += Math.max(0, cost)
      if (isCurrentlyReschedulable(pod, budgets, nowMs)) movable.push(pod)
    }
    const blocking = blockingBudgets(wellFormed, budgets, nowMs).next().value
    return { annotated, blocking, pods, movable, disruptionCost, isEmpty }
  }

  /** Another one after every change that moves other pods, or moves them in another way. */
  get version(): number {
    return this.#version
  }

  /**
   * Works out in steps what {@link of} answers about these nodes.
   * @param nodes the same list as long as no instance has changed.
   */
  *reading(nodes: readonly StateNode[]): Generator<undefined, void, undefined> {
    const version = this.#version
    if (this.#whole?.nodes === nodes && this.#whole.version === version) return
    for (const { node } of nodes) {
      if (node === undefined || this.#known.has(node.metadata.name)) continue
      this.of(node.metadata.name)
      yield
    }
    this.#whole = { nodes, version }
  }
}

/** What unhealthy pods may be evicted by. */
function readinessOf({ status }: Pod): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status
}

/** Empty while it has none; of pods that cannot be read, too. */
function nodeNameOf(pod: Pod): string {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return spec?.nodeName ?? ''
}
