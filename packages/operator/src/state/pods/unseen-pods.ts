/** Pods that the scheduler has yet to look at, and which of them it will refuse. */
import { controllerOf, type Pod } from '@tenon/api'
import { nominatedNodeOf } from './nominated-pods.ts'
import { isActive, isDaemonPod, isMirrorPod, isProvisionable } from './pods.ts'

/** Controllers that make every pod from the same template, volumes and all. */
const templated: ReadonlySet<string> = new Set([
  'apps/v1/ReplicaSet',
  'batch/v1/Job',
  'v1/ReplicationController',
])
/** Stands for every pod of the default scheduler; no UID is empty. */
const burst = ''
const defaultScheduler = 'default-scheduler'

/**
 * Follows pods without a node. The scheduler refuses pods one by one, which takes it longer than it took to
 * make them; a decision about all of them need not wait for that. A pod is *expected* to be refused, too, when
 * another one of its ReplicaSet or Job was, or when the scheduler has just refused any pod that nothing was
 * decided about yet and this one could not preempt others; whether it fits an existing node is for the decision
 * to find out. It stays expected until it has a node, is gone, or the scheduler has spoken.
 */
export class UnseenPods {
  /** UIDs of pods that were refused and have no node, by what they tell about. */
  readonly #refused = new Map<string, Set<string>>()
  /** Pods that nothing is known about, by what tells about them and UID. */
  readonly #unseen = new Map<string, Map<string, Pod>>()
  readonly #expected = new Set<string>()
  /** UIDs of pods that the scheduler has spoken about. */
  readonly #judged = new Set<string>()
  /** UIDs of all pods that anything is remembered of: of most, which have a node, there is nothing to forget. */
  readonly #followed = new Set<string>()

  isExpected(uid: string): boolean {
    return this.#expected.has(uid)
  }

  /**
   * Takes in a pod as it is now.
   * @param mayPreempt whether a pod with less priority has a node.
   * @returns the pods that are expected to be refused from now on.
   */
  see(pod: Pod, mayPreempt: boolean): readonly Pod[] {
    if (isDaemonPod(pod) || isMirrorPod(pod)) return []
    const uid = pod.metadata.uid ?? ''
    const isRefused = isProvisionable(pod)
    if (!isRefused && !isUnseen(pod)) {
      this.forget(pod)
      return []
    }
    this.#followed.add(uid)
    const groups = groupsOf(pod)
    if (isRefused) {
      this.#ends(uid, groups)
      // One that others make room for says nothing about pods like it.
      return nominatedNodeOf(pod) === '' ? this.#refuse(uid, groups) : []
    }
    if (this.#expected.has(uid)) return []
    const telling = mayPreempt ? groups.filter((group) => group !== burst) : groups
    if (telling.some((group) => this.#refused.has(group))) {
      this.#expected.add(uid)
      return [pod]
    }
    for (const group of telling) added(this.#unseen, group, () => new Map<string, Pod>()).set(uid, pod)
    return []
  }

  /** The pod is gone, or waits no more. */
  forget(pod: Pod): void {
    const uid = pod.metadata.uid ?? ''
    if (!this.#followed.delete(uid)) return
    this.#judged.delete(uid)
    const groups = groupsOf(pod)
    this.#ends(uid, groups)
    for (const group of groups) removed(this.#refused, group, uid)
  }

  /** A decision sees all pods that were refused so far: only the next ones tell of a new burst. */
  decided(): void {
    this.#refused.delete(burst)
  }

  #refuse(uid: string, groups: readonly string[]): readonly Pod[] {
    // The scheduler says the same again and again.
    const telling = this.#judged.has(uid) ? groups.filter((group) => group !== burst) : groups
    this.#judged.add(uid)
    const found = new Map<string, Pod>()
    for (const group of telling) {
      added(this.#refused, group, () => new Set<string>()).add(uid)
      for (const [each, pod] of this.#unseen.get(group) ?? []) found.set(each, pod)
    }
    for (const [each, pod] of found) {
      this.#ends(each, groupsOf(pod))
      this.#expected.add(each)
    }
    return [...found.values()]
  }

  /** The pod is no longer one that nothing is known about. */
  #ends(uid: string, groups: readonly string[]): void {
    this.#expected.delete(uid)
    for (const group of groups) removed(this.#unseen, group, uid)
  }
}

/** Of what the scheduler's word about this pod tells, and by what it is told about. */
function groupsOf(pod: Pod): readonly string[] {
  const owner = controllerOf(pod)
  const template =
    owner !== undefined && templated.has(`${owner.apiVersion}/${owner.kind}`) ? [owner.uid] : []
  return (pod.spec.schedulerName ?? defaultScheduler) === defaultScheduler ? [...template, burst] : template
}

/** Whether the pod has no node and waits for the scheduler's first word about it. */
function isUnseen(pod: Pod): boolean {
  const { spec, status } = pod
  return (
    (spec.nodeName ?? '') === '' &&
    isActive(pod) &&
    (spec.schedulingGates ?? []).length === 0 &&
    !(status?.conditions ?? []).some(({ type }) => type === 'PodScheduled')
  )
}

function added<V>(map: Map<string, V>, key: string, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

function removed(
  map: Map<string, { delete(uid: string): boolean; readonly size: number }>,
  key: string,
  uid: string,
): void {
  const members = map.get(key)
  members?.delete(uid)
  if (members?.size === 0) map.delete(key)
}
