/** Whose a pod's `status.nominatedNodeName` is, and whether it still counts (planned-placement.md). */
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { shapeProblems } from '@tenon/engine'
import { type Clock, perObject } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { isActive, isDaemonPod, isMirrorPod } from './pods.ts'
import type { PlanTarget, PodPlans } from './pod-plans.ts'

/** A nomination that has led to nothing for so long no longer counts; the scheduler's binds take as long at most. */
const lastsMs = 10 * 60_000

interface Nomination {
  readonly node: string
  /** Unix milliseconds. */
  readonly sinceMs: number
  readonly pod: Pod
}

/** A pod that a node is kept for. */
export interface NodeHold {
  readonly pod: Pod
  /** When it ends if nothing happens; Unix milliseconds. */
  readonly untilMs: number
}

export class NominatedPods {
  readonly #caches: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims'>
  readonly #nodeOf: (claim: NodeClaim) => Node | undefined
  readonly #isLeaving: (node: Node) => boolean
  readonly #plans: PodPlans
  readonly #clock: Pick<Clock, 'now'>
  /** Present nominations since they were first seen, by pod UID. */
  readonly #present = new Map<string, Nomination>()
  /** UIDs of the nominated pods, by name of the Node. */
  readonly #byNode = new Map<string, Set<string>>()

  /**
   * @param nodeOf the Node of a claim, if there is exactly one.
   * @param isLeaving whether the Node's instance goes away, or is about to.
   */
  constructor(
    caches: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims'>,
    nodeOf: (claim: NodeClaim) => Node | undefined,
    isLeaving: (node: Node) => boolean,
    plans: PodPlans,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#caches = caches
    this.#nodeOf = nodeOf
    this.#isLeaving = isLeaving
    this.#plans = plans
    this.#clock = clock
    caches.pods.onChange(({ kind, object }) => {
      this.#see(object, kind === 'deleted' ? '' : heldNodeOf(object))
    })
  }

  #see(pod: Pod, node: string): void {
    const uid = pod.metadata.uid ?? ''
    const before = this.#present.get(uid)
    if (before !== undefined && before.node !== node) {
      this.#present.delete(uid)
      const others = this.#byNode.get(before.node)
      others?.delete(uid)
      if (others?.size === 0) this.#byNode.delete(before.node)
    }
    if (node === '') return
    const sinceMs = before?.node === node ? before.sinceMs : this.#clock.now()
    this.#present.set(uid, { node, sinceMs, pod })
    this.#byNode.set(node, (this.#byNode.get(node) ?? new Set()).add(uid))
  }

  /** Whether the pod is about to get a room that somebody else made for it, such as preemption. */
  isHeldByOthers(pod: Pod): boolean {
    const nomination = this.#present.get(pod.metadata.uid ?? '')
    if (nomination === undefined || !this.#counts(nomination) || this.isOurs(pod)) return false
    const node = this.#caches.nodes.get({ name: nomination.node })
    return node !== undefined && !this.#isLeaving(node)
  }

  /** Why emptiness and consolidation leave the node alone, whoever nominated the pod. */
  holdOn(nodeName: string): NodeHold | undefined {
    for (const nomination of this.#standing(nodeName)) {
      // A plan that is told again and again is as old as the plan.
      const madeMs = this.#plans.get(nomination.pod.metadata.uid ?? '')?.madeMs
      const sinceMs = this.isOurs(nomination.pod) ? (madeMs ?? nomination.sinceMs) : nomination.sinceMs
      const untilMs = sinceMs + lastsMs
      if (this.#clock.now() < untilMs) return { pod: nomination.pod, untilMs }
    }
    return undefined
  }

  /**
   * Pods that others have nominated to the node, as if they were on it. Those that Tenon nominated wait for what it
   * decides about them.
   */
  arrivingAt(nodeName: string): readonly Pod[] {
    return [...this.#standing(nodeName)].flatMap(({ pod }) =>
      isReadable(pod) && !this.isOurs(pod) ? [arrived(pod)] : [],
    )
  }

  /** The same for all nodes. */
  allArriving(): readonly Pod[] {
    return [...this.#byNode.keys()].flatMap((name) => this.arrivingAt(name))
  }

  *#standing(nodeName: string): Generator<Nomination, void, undefined> {
    for (const uid of this.#byNode.get(nodeName) ?? []) {
      const nomination = this.#present.get(uid)
      if (nomination !== undefined && this.#counts(nomination)) yield nomination
    }
  }

  #counts({ sinceMs }: Nomination): boolean {
    return this.#clock.now() - sinceMs < lastsMs
  }

  /** Whether the pod is nominated as Tenon last wrote it, or as it is planned. */
  isOurs(pod: Pod): boolean {
    const name = nominatedNodeOf(pod)
    if (name === '') return false
    const uid = pod.metadata.uid ?? ''
    if (this.#plans.written(uid)?.node === name) return true
    const plan = this.#plans.get(uid)
    return plan !== undefined && this.nodeFor(plan.target)?.metadata.name === name
  }

  /** The Node that a target has become; undefined while there is none, and once it goes away. */
  nodeFor(target: PlanTarget): Node | undefined {
    const { nodes, nodeClaims } = this.#caches
    const { name } = target
    const claim = target.kind === 'claim' ? nodeClaims.get({ name }) : undefined
    if (claim?.metadata.deletionTimestamp !== undefined) return undefined
    const node = target.kind === 'node' ? nodes.get({ name }) : claim && this.#nodeOf(claim)
    return node?.metadata.deletionTimestamp === undefined ? node : undefined
  }
}

/** The pod as it will be on the node that it is nominated to. */
const arrived = perObject(
  (pod: Pod): Pod => ({ ...pod, spec: { ...pod.spec, nodeName: nominatedNodeOf(pod) } }),
)

/** The node that is kept for the pod: DaemonSets and kubelets keep none for theirs. */
function heldNodeOf(pod: Pod): string {
  const name = nominatedNodeOf(pod)
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  if (name === '' || (spec?.nodeName ?? '') !== '' || !isActive(pod)) return ''
  return isReadable(pod) && (isDaemonPod(pod) || isMirrorPod(pod)) ? '' : name
}

const isReadable = perObject((pod: Pod): boolean => shapeProblems(pod) === undefined)

/** Empty while the pod is not nominated; of pods that cannot be read, too. */
export function nominatedNodeOf({ status }: Pod): string {
  const name: unknown = status?.nominatedNodeName
  return typeof name === 'string' ? name : ''
}
