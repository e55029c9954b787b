/** Facts about pods that decisions need, computed once for each state of a pod or node. */
import {
  accumulate,
  type Node,
  ownValue,
  type Pod,
  requestsOf,
  type ResizedRequests,
  type Resources,
  setOwn,
} from '@tenon/api'
import { type HostPort, hostPortsOf, shapeProblems } from '@tenon/engine'
import type { Cache, Change } from '@tenon/kube'
import { indexes } from '../caches.ts'
import { nominatedNodeOf } from './nominated-pods.ts'
import { isDaemonPod, isProvisionable, isSettled, isTerminal, isTerminating, keyOf } from './pods.ts'
import { UnseenPods } from './unseen-pods.ts'

export interface NodeUse {
  readonly requests: Resources
  /** The part of DaemonSet pods. */
  readonly daemonRequests: Resources
  /** Extended resources that some of the pods have from devices. */
  readonly servedByDevices: readonly string[]
  readonly hostPorts: readonly HostPort[]
  /** Pods with volumes; what these need depends on more than the pod. */
  readonly podsWithVolumes: readonly Pod[]
}

interface Instance {
  readonly node: Node | undefined
}

/** Cached objects are immutable, so each is checked only once. */
export class PodIndex {
  readonly #pods: Cache<Pod>
  readonly #isHeld: (pod: Pod) => boolean
  readonly #wellFormed = new WeakMap<Pod, boolean>()
  /** By UID, including pods that others make room for. */
  readonly #unplaced = new Map<string, Pod>()
  readonly #bound = new Map<string, Pod>()
  /** By Node name; removed when a pod of the node changes. */
  readonly #uses = new Map<string, NodeUse>()
  /** Changes whenever an entry of {@link #uses} may have been removed. */
  #version = 0
  /** The nodes that {@link readUses} has completed, and when. */
  #read: { readonly nodes: readonly Instance[]; readonly version: number } | undefined
  readonly #unseen = new UnseenPods()
  readonly #expectedListeners = new Set<(pod: Pod) => void>()
  /** Number of bound pods by priority. */
  readonly #priorities = new Map<number, number>()
  readonly #expectsRefusals: boolean
  #resized: ResizedRequests = 'sumOfMaxima'

  /**
   * @param isHeld whether others make room for a nominated pod.
   * @param expectsRefusals whether to predict rejections by the scheduler.
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

  /** @returns the pods that are expected to be rejected because of this change. */
  #expectedBy({ kind, object }: Change<Pod>): readonly Pod[] {
    if (!this.#expectsRefusals || !this.isWellFormed(object)) return []
    if (kind !== 'deleted') return this.#unseen.see(object, this.#mayPreempt(object))
    this.#unseen.forget(object)
    return []
  }

  /** Whether a pod of lower priority is bound. */
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

  /** Calls the listener with every pod that is expected to be rejected. @returns the unsubscriber. */
  onExpected(listener: (pod: Pod) => void): () => void {
    this.#expectedListeners.add(listener)
    return () => {
      this.#expectedListeners.delete(listener)
    }
  }

  /** A decision about all pending pods begins. */
  decided(): void {
    this.#unseen.decided()
  }

  /** Whether all fields that decisions read have the types that the API promises. */
  isWellFormed(pod: Pod): boolean {
    let isWellFormed = this.#wellFormed.get(pod)
    if (isWellFormed === undefined) {
      isWellFormed = shapeProblems(pod) === undefined
      this.#wellFormed.set(pod, isWellFormed)
    }
    return isWellFormed
  }

  /** Whether the pod still uses the same resources of the same node: most changes only update its status. */
  takesTheSame(change: Change<Pod>): boolean {
    if (change.kind !== 'updated') return false
    const { old, object } = change
    return (
      old.spec === object.spec &&
      old.metadata.ownerReferences === object.metadata.ownerReferences &&
      old.status?.extendedResourceClaimStatus === object.status?.extendedResourceClaimStatus &&
      isUnresized(old) &&
      isUnresized(object) &&
      this.isWellFormed(old) &&
      this.isWellFormed(object) &&
      isTerminal(old) === isTerminal(object)
    )
  }

  /** Whether the pod needs a node, from us or by preemption. */
  isUnplaced(pod: Pod): boolean {
    if (!this.isWellFormed(pod)) return nodeNameOf(pod) === ''
    return isProvisionable(pod) || (nodeNameOf(pod) === '' && this.#unseen.isExpected(pod.metadata.uid ?? ''))
  }

  /** Whether the pod needs a node from us; a malformed one does as long as it is not bound. */
  isWaiting(pod: Pod): boolean {
    return this.isUnplaced(pod) && !this.#isHeld(pod)
  }

  /** Whether the pod is Ready or has ended; false for a malformed one. */
  isSettled(pod: Pod): boolean {
    return this.isWellFormed(pod) && isSettled(pod)
  }

  /** By UID; undefined unless the pod needs a node. */
  unplaced(uid: string): Pod | undefined {
    return this.#unplaced.get(uid)
  }

  /** Pods that need a node, from us or by preemption; a new array. */
  allUnplaced(): Pod[] {
    return [...this.#unplaced.values()]
  }

  *nominatedTo(nodeName: string): Generator<Pod, void, undefined> {
    for (const pod of this.#unplaced.values()) if (nominatedNodeOf(pod) === nodeName) yield pod
  }

  get waitingCount(): number {
    return this.#unplaced.size === 0 ? 0 : this.waiting().length
  }

  /** Pods that need a node from us; a new array. */
  waiting(): Pod[] {
    return [...this.#unplaced.values()].filter((pod) => !this.#isHeld(pod))
  }

  /** Well-formed bound pods; a new array. */
  bound(): Pod[] {
    return [...this.#bound.values()]
  }

  /** How pods count that are resized in place, as {@link countResized} was last told. */
  get resized(): ResizedRequests {
    return this.#resized
  }

  /** Sets how pods count that are resized in place: as the scheduler of the API server's version counts them. */
  countResized(resized: ResizedRequests): void {
    if (resized === this.#resized) return
    this.#resized = resized
    this.#version++
    this.#uses.clear()
  }

  /**
   * Fills the memo of {@link useOf} for these nodes in steps.
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
   * Resources used by the active and terminating pods of a node. Malformed pods count as nothing.
   */
  useOf(nodeName: string): NodeUse {
    let use = this.#uses.get(nodeName)
    if (use === undefined) {
      const pods = this.#pods.byIndex(indexes.byNode, nodeName).filter((pod) => this.isWellFormed(pod))
      use = useOf(pods, this.#resized)
      // An entry without pods would never be removed.
      if (pods.length > 0) this.#uses.set(nodeName, use)
    }
    return use
  }
}

/** Cheap check that a pod is still well-formed; false if that is not obvious. */
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

/** Whether the pod uses what its spec requests; pods may be malformed. */
function isUnresized({ status }: Pod): boolean {
  return (
    status?.containerStatuses === undefined &&
    status?.initContainerStatuses === undefined &&
    status?.resources === undefined
  )
}

/** Resources that well-formed pods use. */
export function useOf(pods: readonly Pod[], resized?: ResizedRequests): NodeUse {
  const requests: Record<string, number> = {}
  const daemonRequests: Record<string, number> = {}
  const hostPorts: HostPort[] = []
  const servedByDevices: string[] = []
  const podsWithVolumes: Pod[] = []
  for (const pod of pods) {
    if (isTerminal(pod)) continue
    const own = requestsOf(pod, resized)
    accumulate(requests, own)
    if (isDaemonPod(pod)) accumulate(daemonRequests, own)
    for (const { resourceName } of pod.status?.extendedResourceClaimStatus?.requestMappings ?? [])
      servedByDevices.push(resourceName)
    hostPorts.push(...hostPortsOf(pod.spec))
    if ((pod.spec.volumes ?? []).length > 0) podsWithVolumes.push(pod)
  }
  return { requests, daemonRequests, servedByDevices, hostPorts, podsWithVolumes }
}

/**
 * Resources used once other pods have arrived; all must be well-formed. Terminating pods leave their room to the arriving
 * ones, as preemption made it for them.
 */
export function useWith(pods: readonly Pod[], arriving: readonly Pod[], resized?: ResizedRequests): NodeUse {
  const now = useOf(pods, resized)
  const coming = useOf(arriving, resized)
  const then: Record<string, number> = { ...coming.requests }
  accumulate(
    then,
    useOf(
      pods.filter((pod) => !isTerminating(pod)),
      resized,
    ).requests,
  )
  const requests: Record<string, number> = { ...now.requests }
  for (const [name, amount] of Object.entries(then))
    setOwn(requests, name, Math.max(amount, ownValue(requests, name) ?? 0))
  return {
    requests,
    daemonRequests: now.daemonRequests,
    // Whether devices will serve an arriving pod is not known before it is bound.
    servedByDevices: [...now.servedByDevices, ...Object.keys(coming.requests)],
    hostPorts: [...now.hostPorts, ...coming.hostPorts],
    podsWithVolumes: [...now.podsWithVolumes, ...coming.podsWithVolumes],
  }
}

/** Empty if not bound, or malformed. */
function nodeNameOf(pod: Pod): string {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return spec?.nodeName ?? ''
}
