/** What decisions ask about all pods again and again, worked out once for each state of a pod or node. */
import type { Pod, Resources } from '@tenon/api'
import { type HostPort, hostPortsOf, podRequests, shapeProblems, sum } from '@tenon/engine'
import type { Cache, Change } from '@tenon/kube'
import { indexes } from '../observe/caches.ts'
import { nominatedNodeOf } from './nominated-pods.ts'
import { PodTwins } from './pod-twins.ts'
import { isDaemonPod, isProvisionable, isSettled, isTerminal, keyOf } from './pods.ts'

/** What the pods on a node take of it. */
export interface NodeUse {
  readonly requests: Resources
  /** The part of it that daemon pods take. */
  readonly daemonRequests: Resources
  readonly hostPorts: readonly HostPort[]
  /** The pods that have volumes; what these are depends on more than the pod. */
  readonly podsWithVolumes: readonly Pod[]
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
  readonly #twins = new PodTwins()
  readonly #twinListeners = new Set<(pod: Pod) => void>()
  /** Set by the composition root: whether a pod counts as refused when another one of its template was. */
  expectsTwins = false

  /** @param isHeld whether a nominated pod waits for a room that others make for it. */
  constructor(pods: Cache<Pod>, isHeld: (pod: Pod) => boolean = (pod) => nominatedNodeOf(pod) !== '') {
    this.#pods = pods
    this.#isHeld = isHeld
    pods.onChange((change) => {
      const { object } = change
      this.#uses.delete(nodeNameOf(object))
      if (change.kind === 'updated') this.#uses.delete(nodeNameOf(change.old))
      const uid = object.metadata.uid ?? keyOf(object.metadata)
      this.#unplaced.delete(uid)
      this.#bound.delete(uid)
      const twins = this.#twinsBy(change)
      if (change.kind === 'deleted') return
      if (this.isUnplaced(object)) this.#unplaced.set(uid, object)
      if (nodeNameOf(object) !== '' && this.isWellFormed(object)) this.#bound.set(uid, object)
      for (const twin of twins) this.#unplaced.set(twin.metadata.uid ?? keyOf(twin.metadata), twin)
      for (const twin of twins) for (const listener of this.#twinListeners) listener(twin)
    })
  }

  /** @returns the pods that are unplaced because of this change to another pod, or to themselves. */
  #twinsBy({ kind, object }: Change<Pod>): readonly Pod[] {
    if (!this.expectsTwins || !this.isWellFormed(object)) return []
    if (kind !== 'deleted') return this.#twins.see(object)
    this.#twins.forget(object)
    return []
  }

  /** Tells of every pod that counts as refused because another one was; answers the unsubscriber. */
  onTwin(listener: (pod: Pod) => void): () => void {
    this.#twinListeners.add(listener)
    return () => {
      this.#twinListeners.delete(listener)
    }
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

  /** Whether the pod has no node and asks for one, be it from us or from others. */
  isUnplaced(pod: Pod): boolean {
    if (!this.isWellFormed(pod)) return nodeNameOf(pod) === ''
    return isProvisionable(pod) || (nodeNameOf(pod) === '' && this.#twins.has(pod.metadata.uid ?? ''))
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

  /** Works out in steps what {@link useOf} answers about these nodes. */
  *readUses(nodeNames: Iterable<string>): Generator<undefined, void, undefined> {
    for (const name of nodeNames) {
      this.useOf(name)
      yield
    }
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

/** What pods take of their node; they must be well-formed. */
export function useOf(pods: readonly Pod[]): NodeUse {
  let requests: Resources = {}
  let daemonRequests: Resources = {}
  const hostPorts: HostPort[] = []
  const podsWithVolumes: Pod[] = []
  for (const pod of pods) {
    if (isTerminal(pod)) continue
    const own = podRequests(pod.spec, pod.status)
    requests = sum(requests, own)
    if (isDaemonPod(pod)) daemonRequests = sum(daemonRequests, own)
    hostPorts.push(...hostPortsOf(pod.spec))
    if ((pod.spec.volumes ?? []).length > 0) podsWithVolumes.push(pod)
  }
  return { requests, daemonRequests, hostPorts, podsWithVolumes }
}

/** Empty while it has none; of pods that cannot be read, too. */
function nodeNameOf(pod: Pod): string {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return spec?.nodeName ?? ''
}
