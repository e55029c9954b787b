/** Whose a pod's `status.nominatedNodeName` is, and whether it still counts (planned-placement.md). */
import type { Node, NodeClaim, Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import type { PlanTarget, PodPlans } from './pod-plans.ts'

interface Nomination {
  readonly node: string
  /** Unix milliseconds. */
  readonly sinceMs: number
}

export class NominatedPods {
  readonly #caches: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims'>
  readonly #nodeOf: (claim: NodeClaim) => Node | undefined
  readonly #plans: PodPlans
  readonly #clock: Pick<Clock, 'now'>
  readonly #maxAgeMs: number
  /** First sight of the present nomination, by pod UID. */
  readonly #seen = new Map<string, Nomination>()

  /**
   * @param nodeOf the Node of a claim, if there is exactly one.
   * @param maxAgeMs a nomination that has led to nothing for so long no longer counts.
   */
  constructor(
    caches: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims'>,
    nodeOf: (claim: NodeClaim) => Node | undefined,
    plans: PodPlans,
    clock: Pick<Clock, 'now'>,
    maxAgeMs: number,
  ) {
    this.#caches = caches
    this.#nodeOf = nodeOf
    this.#plans = plans
    this.#clock = clock
    this.#maxAgeMs = maxAgeMs
    caches.pods.onChange(({ kind, object }) => {
      const uid = object.metadata.uid ?? ''
      const node = kind === 'deleted' ? '' : nominatedNodeOf(object)
      if (node === '') this.#seen.delete(uid)
      else if (this.#seen.get(uid)?.node !== node) this.#seen.set(uid, { node, sinceMs: clock.now() })
    })
  }

  /** Whether the pod is about to get a room that somebody else made for it, such as preemption. */
  isHeldByOthers(pod: Pod): boolean {
    const name = nominatedNodeOf(pod)
    if (name === '' || this.isOurs(pod)) return false
    const node = this.#caches.nodes.get({ name })
    if (node === undefined || node.metadata.deletionTimestamp !== undefined) return false
    const since = this.#seen.get(pod.metadata.uid ?? '')?.sinceMs ?? 0
    return this.#clock.now() - since < this.#maxAgeMs
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

/** Empty while the pod is not nominated; of pods that cannot be read, too. */
export function nominatedNodeOf({ status }: Pod): string {
  const name: unknown = status?.nominatedNodeName
  return typeof name === 'string' ? name : ''
}
