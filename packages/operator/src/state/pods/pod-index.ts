/** What decisions ask about all pods again and again, worked out once for each state of a pod or node. */
import { accumulate, type Node, ownValue, type Pod, requestsOf, type Resources, setOwn } from '@tenon/api'
import { type HostPort, hostPortsOf, shapeProblems } from '@tenon/engine'
import type { Cache, Change } from '@tenon/kube'
import { indexes } from '../caches.ts'
import { nominatedNodeOf } from './nominated-pods.ts'
import { isDaemonPod, isProvisionable, isSettled, isTerminal, isTerminating, keyOf } from './pods.ts'
import { UnseenPods } from './unseen-pods.ts'

/** What the pods on a node take of it. */
export interface NodeUse {
  readonly requests: Resources
  /** The part of it that daemon pods take. */
  readonly daemonRequests: Resources
  readonly hostPorts: readonly HostPort[]
  /** The pods that have volumes; what these are depends on more than the pod. */
  readonly podsWithVolumes: readonly Pod[]
}

/** An instance, which may have no Node yet. */
interface Instance {
  readonly node: Node | undefined
}

/** Follows the pods of a cache; objects of a cache never change, so that each is looked at only once. */
export class PodIndex {
  readonly #pods: Cache<Pod>
  readonly #isHeld: (pod: Pod) => boolean
  readonly #wellFormed = new WeakMap<Pod, boolean>()
  /** By UID; those that are held among them. */
  readonly #unplaced = new Map<string, Pod>()
  readonly #bound = new Map<string, Pod>()
  /** By Node name; an entry goes with the first change to a pod of the node. */
  readonly #uses = new Map<string, NodeUse>()
  /** Another one whenever an entry of these may have gone. */
  #version = 0
  /** Of which nodes all was known last, and when. */
  #read: { readonly nodes: readonly Instance[]; readonly version: number } | undefined
  readonly #unseen = new UnseenPods()
  readonly #expectedListeners = new Set<(pod: Pod) => void>()
  /** Pods on nodes, by priority. */
  readonly #priorities = new Map<number, number>()
  readonly #expectsRefusals: boolean

  /**
   * @param isHeld whether a nominated pod waits for room that others make for it.
   * @param expectsRefusals whether pods count as refused that are expected to be.
   */
  constructor(
    pods: Cache<Pod>,
    isHeld: (pod: Pod) => boolean = (pod) => nominatedNodeOf(pod) !== '',
    expectsRefusals = false,
  ) {
    this.#pods = pods
    this.#expectsRefusals = expectsRefusals
    this.#isHeld = isHeld
    pods.onChange((change) => {
      const { object } = change
      if (change.kind === 'updated' && isStillWellFormed(change, this.#wellFormed))
        this.#wellFormed.set(object, true)
      if (!this.takesTheSame(change)) {
        this.#version++
        this.#uses.delete(nodeNameOf(object))
        if (change.kind === 'updated') this.#uses.delete(nodeNameOf(change.old))
      }
      const uid = object.metadata.uid ?? keyOf(object.metadata)
      this.#unplaced.delete(uid)
      const before = this.#bound.get(uid)
      if (before !== undefined) this.#countPriority(before, -1)
      this.#bound.delete(uid)
      const expected = this.#expectedBy(change)
      if (change.kind === 'deleted') return
      if (this.isUnplaced(object)) this.#unplaced.set(uid, object)
      if (nodeNameOf(object) !== '' && this.isWellFormed(object)) {
        this.#bound.set(uid, object)
        this.#countPriority(object, 1)
      }
      for (const pod of expected) this.#unplaced.set(pod.metadata.uid ?? keyOf(pod.metadata), pod)
      for (const pod of expected) for (const listener of this.#expectedListeners) listener(pod)
    })
  }

  /** @returns the pods that are unplaced because of this change to another pod, or to themselves. */
  #expectedBy({ kind, object }: Change<Pod>): readonly Pod[] {
    if (!this.#expectsRefusals || !this.isWellFormed(object)) return []
    if (kind !== 'deleted') return this.#unseen.see(object, this.#mayPreempt(object))
    this.#unseen.forget(object)
    return []
  }

  /** Whether a pod of less priority has a node, so that this one may take its place. */
  #mayPreempt({ spec }: Pod): boolean {
    if (spec.preemptionPolicy === 'Never') return false
    const own = spec.priority ?? 0
    for (const priority of this.#priorities.keys()) if (priority < own) return true
    return false
  }

  #countPriority({ spec: { priority = 0 } }: Pod, by: 1 | -1): void {
    const count = (this.#priorities.get(priority) ?? 0) + by
    if (count === 0) this.#priorities.delete(priority)
    else this.#priorities.set(priority, count)
  }

  /** Tells of every pod that counts as refused because others were; answers the unsubscriber. */
  onExpected(listener: (pod: Pod) => void): () => void {
    this.#expectedListeners.add(listener)
    return () => {
      this.#expectedListeners.delete(listener)
    }
  }

  /** A decision is made about all pods that wait now. */
  decided(): void {
    this.#unseen.decided()
  }

  /** Whether every field of the pod that a decision reads is what the API promises. */
  isWellFormed(pod: Pod): boolean {
    let isWellFormed = this.#wellFormed.get(pod)
    if (isWellFormed === undefined) {
      isWellFormed = shapeProblems(pod) === undefined
      this.#wellFormed.set(pod, isWellFormed)
    }
    return isWellFormed
  }

  /** Whether the pod still takes the same of the same node: most changes tell only how it fares. */
  takesTheSame(change: Change<Pod>): boolean {
    if (change.kind !== 'updated') return false
    const { old, object } = change
    return (
      old.spec === object.spec &&
      old.metadata.ownerReferences === object.metadata.ownerReferences &&
      isUnresized(old) &&
      isUnresized(object) &&
      this.isWellFormed(old) &&
      this.isWellFormed(object) &&
      isTerminal(old) === isTerminal(object)
    )
  }

  /** Whether the pod has no node and asks for one, be it from us or from others. */
  isUnplaced(pod: Pod): boolean {
    if (!this.isWellFormed(pod)) return nodeNameOf(pod) === ''
    return isProvisionable(pod) || (nodeNameOf(pod) === '' && this.#unseen.isExpected(pod.metadata.uid ?? ''))
  }

  /** Whether the pod asks for a node; one that cannot be read asks as long as it has none. */
  isWaiting(pod: Pod): boolean {
    return this.isUnplaced(pod) && !this.#isHeld(pod)
  }

  /** Whether the pod serves or has ended; of one that cannot be read nobody knows. */
  isSettled(pod: Pod): boolean {
    return this.isWellFormed(pod) && isSettled(pod)
  }

  /** The pod with this UID, as long as it has no node and asks for one. */
  unplaced(uid: string): Pod | undefined {
    return this.#unplaced.get(uid)
  }

  /** Pods without a node that ask for one, be it from us or from others; a fresh array. */
  allUnplaced(): Pod[] {
    return [...this.#unplaced.values()]
  }

  /** Pods without a node that one is being kept for. */
  *nominatedTo(nodeName: string): Generator<Pod, void, undefined> {
    for (const pod of this.#unplaced.values()) if (nominatedNodeOf(pod) === nodeName) yield pod
  }

  get waitingCount(): number {
    return this.#unplaced.size === 0 ? 0 : this.waiting().length
  }

  /** Pods that ask for a node; a fresh array. */
  waiting(): Pod[] {
    return [...this.#unplaced.values()].filter((pod) => !this.#isHeld(pod))
  }

  /** Well-formed pods that have a node; a fresh array. */
  bound(): Pod[] {
    return [...this.#bound.values()]
  }

  /**
   * Works out in steps what {@link useOf} answers about these nodes.
   * @param nodes the same list as long as no instance has changed.
   */
  *readUses(nodes: readonly Instance[]): Generator<undefined, void, undefined> {
    const version = this.#version
    if (this.#read?.nodes === nodes && this.#read.version === version) return
    for (const { node } of nodes) {
      if (node === undefined || this.#uses.has(node.metadata.name)) continue
      this.useOf(node.metadata.name)
      yield
    }
    this.#read = { nodes, version }
  }

  /**
   * What the node's pods take that have not ended. Of a pod that cannot be read that is not known; it
   * counts as nothing.
   */
  useOf(nodeName: string): NodeUse {
    let use = this.#uses.get(nodeName)
    if (use === undefined) {
      const pods = this.#pods.byIndex(indexes.byNode, nodeName).filter((pod) => this.isWellFormed(pod))
      use = useOf(pods)
      // Nodes without pods would stay here when they are gone.
      if (pods.length > 0) this.#uses.set(nodeName, use)
    }
    return use
  }
}

/** Whether all that can be misshapen in the pod is what it was, or is seen to be right at a glance. */
function isStillWellFormed(
  { old, object }: Change<Pod> & { readonly kind: 'updated' },
  known: WeakMap<Pod, boolean>,
): boolean {
  const [before, after] = [old.metadata, object.metadata]
  return (
    known.get(old) === true &&
    old.spec === object.spec &&
    before.labels === after.labels &&
    before.annotations === after.annotations &&
    before.ownerReferences === after.ownerReferences &&
    isUnresized(object) &&
    hasPlainConditions(object)
  )
}

function hasPlainConditions({ status }: { readonly status?: unknown }): boolean {
  if (status === undefined) return true
  if (typeof status !== 'object' || status === null || Array.isArray(status)) return false
  const { conditions } = status as { readonly conditions?: unknown }
  if (conditions === undefined) return true
  if (!Array.isArray(conditions)) return false
  return conditions.every((each: { readonly type?: unknown } | null) => typeof each?.type === 'string')
}

/** Whether the pod takes what its spec says; misshapen ones come through here, too. */
function isUnresized({ status }: Pod): boolean {
  return status?.containerStatuses === undefined && status?.initContainerStatuses === undefined
}

/** What pods take of their node; they must be well-formed. */
export function useOf(pods: readonly Pod[]): NodeUse {
  const requests: Record<string, number> = {}
  const daemonRequests: Record<string, number> = {}
  const hostPorts: HostPort[] = []
  const podsWithVolumes: Pod[] = []
  for (const pod of pods) {
    if (isTerminal(pod)) continue
    const own = requestsOf(pod)
    accumulate(requests, own)
    if (isDaemonPod(pod)) accumulate(daemonRequests, own)
    hostPorts.push(...hostPortsOf(pod.spec))
    if ((pod.spec.volumes ?? []).length > 0) podsWithVolumes.push(pod)
  }
  return { requests, daemonRequests, hostPorts, podsWithVolumes }
}

/**
 * What the pods of a node take of it once others have come, of which all must be well-formed. What pods leave that are
 * being stopped goes to those that come: preemption made that room for them.
 */
export function useWith(pods: readonly Pod[], arriving: readonly Pod[]): NodeUse {
  const now = useOf(pods)
  const coming = useOf(arriving)
  const then: Record<string, number> = { ...coming.requests }
  accumulate(then, useOf(pods.filter((pod) => !isTerminating(pod))).requests)
  const requests: Record<string, number> = { ...now.requests }
  for (const [name, amount] of Object.entries(then))
    setOwn(requests, name, Math.max(amount, ownValue(requests, name) ?? 0))
  return {
    requests,
    daemonRequests: now.daemonRequests,
    hostPorts: [...now.hostPorts, ...coming.hostPorts],
    podsWithVolumes: [...now.podsWithVolumes, ...coming.podsWithVolumes],
  }
}

/** Empty while it has none; of pods that cannot be read, too. */
function nodeNameOf(pod: Pod): string {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return spec?.nodeName ?? ''
}
