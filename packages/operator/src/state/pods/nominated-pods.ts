/** Nominations of pods by Tenon, by preemption and by others (planned-placement.md). */
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { shapeProblems } from '@tenon/engine'
import { type Clock, perObject } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { isActive, isDaemonPod, isMirrorPod } from './pods.ts'
import type { PlanTarget, PodPlans } from './pod-plans.ts'

/** Nominations expire after this; a bind of the scheduler takes no longer. */
const lastsMs = 10 * 60_000

interface Nomination {
  readonly node: string
  /** Unix milliseconds. */
  readonly sinceMs: number
  readonly pod: Pod
}

/** A pod that keeps a node from being removed. */
export interface NodeHold {
  readonly pod: Pod
  /** Unix milliseconds. */
  readonly untilMs: number
}

export class NominatedPods {
  readonly #caches: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims'>
  readonly #nodeOf: (claim: NodeClaim) => Node | undefined
  readonly #isLeaving: (node: Node) => boolean
  readonly #plans: PodPlans
  readonly #clock: Pick<Clock, 'now'>
  /** Current nominations by pod UID. */
  readonly #present = new Map<string, Nomination>()
  /** UIDs of the nominated pods, by name of the Node. */
  readonly #byNode = new Map<string, Set<string>>()

  /**
   * @param nodeOf the Node of a claim, if there is exactly one.
   * @param isLeaving whether the Node's instance is being deleted or marked for it.
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

  /** Whether somebody else makes room for the pod, such as preemption. */
  isHeldByOthers(pod: Pod): boolean {
    const nomination = this.#present.get(pod.metadata.uid ?? '')
    if (nomination === undefined || !this.#counts(nomination) || this.isOurs(pod)) return false
    const node = this.#caches.nodes.get({ name: nomination.node })
    return node !== undefined && !this.#isLeaving(node)
  }

  /** Why emptiness and consolidation leave the node alone; also because of nominations by others. */
  holdOn(nodeName: string): NodeHold | undefined {
    for (const nomination of this.#standing(nodeName)) {
      // A nomination of ours may be rewritten: it is as old as the plan.
      const madeMs = this.#plans.get(nomination.pod.metadata.uid ?? '')?.madeMs
      const sinceMs = this.isOurs(nomination.pod) ? (madeMs ?? nomination.sinceMs) : nomination.sinceMs
      const untilMs = sinceMs + lastsMs
      if (this.#clock.now() < untilMs) return { pod: nomination.pod, untilMs }
    }
    return undefined
  }

  /**
   * Pods that others have nominated for the node, as if they were bound to it. Pods that Tenon nominated are part of its
   * decisions.
   */
  arrivingAt(nodeName: string): readonly Pod[] {
    return [...this.#standing(nodeName)].flatMap(({ pod }) =>
      isReadable(pod) && !this.isOurs(pod) ? [arrived(pod)] : [],
    )
  }

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

  /** Whether the nomination is what Tenon wrote last, or matches the plan. */
  isOurs(pod: Pod): boolean {
    const name = nominatedNodeOf(pod)
    if (name === '') return false
    const uid = pod.metadata.uid ?? ''
    if (this.#plans.written(uid)?.node === name) return true
    const plan = this.#plans.get(uid)
    return plan !== undefined && this.nodeFor(plan.target)?.metadata.name === name
  }

  /** The Node of a target; undefined if it does not exist or is being deleted. */
  nodeFor(target: PlanTarget): Node | undefined {
    const { nodes, nodeClaims } = this.#caches
    const { name } = target
    const claim = target.kind === 'claim' ? nodeClaims.get({ name }) : undefined
    if (claim?.metadata.deletionTimestamp !== undefined) return undefined
    const node = target.kind === 'node' ? nodes.get({ name }) : claim && this.#nodeOf(claim)
    return node?.metadata.deletionTimestamp === undefined ? node : undefined
  }
}

/** The pod as if it were bound to its nominated node. */
const arrived = perObject(
  (pod: Pod): Pod => ({ ...pod, spec: { ...pod.spec, nodeName: nominatedNodeOf(pod) } }),
)

/** Empty for pods that keep no node: bound, ended, DaemonSet and mirror pods. */
function heldNodeOf(pod: Pod): string {
  const name = nominatedNodeOf(pod)
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  if (name === '' || (spec?.nodeName ?? '') !== '' || !isActive(pod)) return ''
  return isReadable(pod) && (isDaemonPod(pod) || isMirrorPod(pod)) ? '' : name
}

const isReadable = perObject((pod: Pod): boolean => shapeProblems(pod) === undefined)

/** Empty if the pod is not nominated, or malformed. */
export function nominatedNodeOf({ status }: Pod): string {
  const name: unknown = status?.nominatedNodeName
  return typeof name === 'string' ? name : ''
}
