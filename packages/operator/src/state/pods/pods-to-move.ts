/** Pods of each node as disruption needs them, computed once for each state of the pods (disruption.md 3, 4). */
import { annotations, type Pod, type PodDisruptionBudget } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { type Caches, indexes } from '../caches.ts'
import type { StateNode } from '../nodes/state-node.ts'
import { type BudgetOutlook, outlookOf } from './budget-outlook.ts'
import type { DisruptionWindows } from './disruption-windows.ts'
import type { NominatedPods } from './nominated-pods.ts'
import type { SurgingPods } from './surging-pods.ts'
import type { PodIndex } from './pod-index.ts'
import {
  budgetsOf,
  evictionCost,
  isCurrentlyReschedulable,
  isEvictable,
  isPausedByBudget,
  isReschedulable,
  keyOf,
} from './pods.ts'

/** Pods of a node; malformed ones are left out unless stated otherwise. */
export interface PodsToMove {
  /** Pods with annotation do-not-disrupt, even if malformed, or with disruption windows. */
  readonly annotated: readonly Pod[]
  /** When their protection may change, in Unix milliseconds. */
  readonly lastsUntilMs: number
  /** PDBs of the first pod that PDBs block. */
  readonly blocking: BlockingBudgets | undefined
  /** Pods that need another node, including those about to arrive. */
  readonly pods: readonly Pod[]
  /** Those of them that may be evicted. */
  readonly movable: readonly Pod[]
  /** At least 1. */
  readonly disruptionCost: number
  /** Whether there is no pod to move, not even a malformed one. */
  readonly isEmpty: boolean
}

/** What says whether PDBs hold pods. */
interface Judges {
  readonly surging: SurgingPods
  readonly windows: DisruptionWindows
  readonly clock: Pick<Clock, 'now'>
  /** Whether PDBs that can never allow an eviction are told from those that wait. */
  readonly judgesBudgets: boolean
}

/** Every pass of the disruption loop reads every node, while few nodes change in between. */
export class PodsOnNodes {
  readonly #caches: Pick<Caches, 'pods' | 'podDisruptionBudgets'>
  readonly #index: PodIndex
  readonly #nominations: NominatedPods
  readonly #surging: SurgingPods
  readonly windows: DisruptionWindows
  readonly #clock: Pick<Clock, 'now'>
  readonly #judgesBudgets: boolean
  /** By Node name; removed when a pod of the node or a PDB changes. */
  readonly #known = new Map<string, PodsToMove>()
  #budgets: readonly PodDisruptionBudget[] | undefined
  #version = 0
  /** The nodes that {@link reading} has completed, and when. */
  #whole:
    | { readonly nodes: readonly StateNode[]; readonly version: number; readonly untilMs: number }
    | undefined

  constructor(
    caches: Pick<Caches, 'pods' | 'podDisruptionBudgets'>,
    index: PodIndex,
    nominations: NominatedPods,
    { clock, judgesBudgets, surging, windows }: Judges,
  ) {
    this.#caches = caches
    this.#index = index
    this.#nominations = nominations
    this.#surging = surging
    this.windows = windows
    this.#clock = clock
    this.#judgesBudgets = judgesBudgets
    caches.pods.onChange((change) => {
      if (change.kind === 'updated' && this.#movesTheSame(change)) {
        this.#replace(change.old, change.object)
        return
      }
      this.#version++
      this.#known.delete(nodeNameOf(change.object))
      if (change.kind === 'updated') this.#known.delete(nodeNameOf(change.old))
    })
    const forget = () => {
      this.#version++
      this.#budgets = undefined
      this.#known.clear()
    }
    caches.podDisruptionBudgets.onChange(forget)
    surging.changes.add(forget)
    windows.changes.add(forget)
  }

  /** Whether the change of a pod does not matter for disruption: most only update its status. */
  #movesTheSame(change: Change<Pod> & { readonly kind: 'updated' }): boolean {
    const [before, after] = [change.old.metadata, change.object.metadata]
    return (
      this.#index.takesTheSame(change) &&
      before.uid === after.uid &&
      before.labels === after.labels &&
      before.annotations === after.annotations &&
      before.deletionTimestamp === after.deletionTimestamp &&
      readinessOf(change.old) === readinessOf(change.object)
    )
  }

  /** Replaces the old object of an unchanged pod in the memo. */
  #replace(old: Pod, pod: Pod): void {
    const name = nodeNameOf(pod)
    const known = this.#known.get(name)
    if (known === undefined) return
    const now = (pods: readonly Pod[]) =>
      pods.includes(old) ? pods.map((each) => (each === old ? pod : each)) : pods
    this.#known.set(name, {
      ...known,
      annotated: now(known.annotated),
      pods: now(known.pods),
      movable: now(known.movable),
    })
  }

  /** The same list until a PDB changes. */
  budgets(): readonly PodDisruptionBudget[] {
    this.#budgets ??= this.#caches.podDisruptionBudgets.list()
    return this.#budgets
  }

  /** Pods of the node that PDBs block. */
  *held(nodeName: string): Generator<BlockingBudgets, undefined, undefined> {
    const pods = this.#caches.pods.byIndex(indexes.byNode, nodeName)
    const wellFormed = pods.filter((pod) => this.#index.isWellFormed(pod))
    yield* this.blocking(wellFormed)
  }

  /** Those of the pods that PDBs block. Where a drain surges, it evicts nobody, and no PDB matters (wanted.md 3). */
  *blocking(pods: readonly Pod[]): Generator<BlockingBudgets, undefined, undefined> {
    const evicted = this.#surging.isOn ? pods.filter((pod) => !this.surges(pod)) : pods
    yield* blockingBudgets(evicted, this.budgets(), this.#clock.now(), this.windows)
  }

  /** Whether a rollout replaces the pod before its node goes. */
  surges(pod: Pod): boolean {
    return this.#surging.isOn && this.#surging.surges(pod, budgetsOf(pod, this.budgets()))
  }

  /** Whether a PDB that blocks a pod may let it go later; undefined in the compatibility mode. */
  outlookOf(budget: PodDisruptionBudget): BudgetOutlook | undefined {
    if (!this.#judgesBudgets) return undefined
    return outlookOf(budget, this.#caches.pods.byIndex(indexes.unready, budget.metadata.namespace ?? ''))
  }

  of(nodeName: string): PodsToMove {
    const present = this.#presentOn(nodeName)
    const arriving = this.#nominations.arrivingAt(nodeName)
    if (arriving.length === 0) return present
    return {
      ...present,
      pods: [...present.pods, ...arriving],
      movable: [...present.movable, ...arriving],
    }
  }

  #presentOn(nodeName: string): PodsToMove {
    const known = this.#known.get(nodeName)
    if (known !== undefined && this.#clock.now() < known.lastsUntilMs) return known
    const all = this.#caches.pods.byIndex(indexes.byNode, nodeName)
    const found = this.read(all)
    // An entry without pods would never be removed.
    if (all.length > 0) this.#known.set(nodeName, found)
    return found
  }

  /** The same for given pods. */
  read(all: readonly Pod[]): PodsToMove {
    const budgets = this.budgets()
    const nowMs = this.#clock.now()
    const wellFormed: Pod[] = []
    const annotated: Pod[] = []
    const pods: Pod[] = []
    const movable: Pod[] = []
    let disruptionCost = 1
    let isEmpty = true
    let lastsUntilMs = Infinity
    for (const pod of all) {
      const cost = isReschedulable(pod) ? evictionCost(pod) : undefined
      if (cost !== undefined) isEmpty = false
      if (!this.#index.isWellFormed(pod)) continue
      wellFormed.push(pod)
      const windows = this.windows.of(pod, nowMs)
      const isMarked = pod.metadata.annotations?.[annotations.doNotDisrupt] !== undefined
      if (isMarked || windows !== undefined) annotated.push(pod)
      // The annotation may expire, from when the pod starts on.
      lastsUntilMs = Math.min(lastsUntilMs, isMarked ? nowMs : (windows?.changeMs ?? Infinity))
      if (cost === undefined) continue
      pods.push(pod)
      disruptionCost += Math.max(0, cost)
      // Of a pod that surges, PDBs say nothing.
      const judging = this.surges(pod) ? [] : budgets
      if (isCurrentlyReschedulable(pod, judging, nowMs, this.windows)) movable.push(pod)
    }
    const blocking = this.blocking(wellFormed).next().value
    return { annotated, lastsUntilMs, blocking, pods, movable, disruptionCost, isEmpty }
  }

  /** Changes whenever the pods to move may have changed. */
  get version(): number {
    return this.#version
  }

  /**
   * Fills the memo of {@link of} for these nodes in steps.
   * @param nodes the same list as long as no instance has changed.
   */
  *reading(nodes: readonly StateNode[]): Generator<undefined, void, undefined> {
    const version = this.#version
    const nowMs = this.#clock.now()
    const whole = this.#whole
    if (whole?.nodes === nodes && whole.version === version && nowMs < whole.untilMs) return
    let untilMs = Infinity
    for (const { node } of nodes) {
      if (node === undefined) continue
      let known = this.#known.get(node.metadata.name)
      if (known === undefined || known.lastsUntilMs <= nowMs) {
        known = this.#presentOn(node.metadata.name)
        yield
      }
      untilMs = Math.min(untilMs, known.lastsUntilMs)
    }
    this.#whole = { nodes, version, untilMs }
  }
}

/** Matters for unhealthyPodEvictionPolicy. */
function readinessOf({ status }: Pod): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status
}

/** Empty if not bound, or malformed. */
function nodeNameOf(pod: Pod): string {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return spec?.nodeName ?? ''
}

/** A blocked pod and its PDBs. */
export interface BlockingBudgets {
  /** `exhausted`: the PDB allows no disruption now; `several`: eviction supports only one PDB. */
  readonly kind: 'exhausted' | 'several'
  /** As `namespace/name`. */
  readonly pod: string
  /** As `namespace/name`. */
  readonly budgets: readonly string[]
  readonly covering: readonly PodDisruptionBudget[]
}

/** Pods that PDBs block (disruption.md 3). */
function* blockingBudgets(
  pods: readonly Pod[],
  budgets: readonly PodDisruptionBudget[],
  nowMs: number,
  windows: DisruptionWindows,
): Generator<BlockingBudgets, undefined, undefined> {
  for (const pod of pods) {
    const covering = budgetsOf(pod, budgets)
    if (covering.length === 0 || !isEvictable(pod, nowMs, windows)) continue
    const isSeveral = covering.length > 1
    if (!isSeveral && !isPausedByBudget(pod, covering, nowMs, windows)) continue
    yield {
      kind: isSeveral ? 'several' : 'exhausted',
      pod: keyOf(pod.metadata),
      budgets: covering.map(({ metadata }) => keyOf(metadata)).toSorted(),
      covering,
    }
  }
  return undefined
}
