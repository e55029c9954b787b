/** Pods that the scheduler has not tried yet, and when it last updated the others. */
import { controllerOf, type Pod } from '@tenon/api'
import { nominatedNodeOf } from './nominated-pods.ts'
import { isActive, isDaemonPod, isMirrorPod, isProvisionable } from './pods.ts'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import type { PodPlans } from './pod-plans.ts'

/** Controllers whose pods are identical, including volumes. */
const templated: ReadonlySet<string> = new Set([
  'apps/v1/ReplicaSet',
  'batch/v1/Job',
  'v1/ReplicationController',
])
/** Stands for every pod of the default scheduler; no UID is empty. */
const burst = ''
const defaultScheduler = 'default-scheduler'

/**
 * Pods without a node. The scheduler rejects pods one by one, which takes longer than creating them; a decision about all
 * of them need not wait for that. A pod is *expected* to be rejected when another one of its ReplicaSet or Job was, or when
 * the scheduler has just rejected any pod that no decision was about yet and this one could not preempt others; whether it
 * fits an existing node is for the decision to find out. It stays expected until it is bound, deleted, or tried.
 */
export class UnseenPods {
  /** UIDs of rejected pods, by group. */
  readonly #refused = new Map<string, Set<string>>()
  /** Pods that are neither rejected nor expected to be, by group and UID. */
  readonly #unseen = new Map<string, Map<string, Pod>>()
  readonly #expected = new Set<string>()
  /** UIDs of pods that the scheduler has rejected. */
  readonly #judged = new Set<string>()
  /** UIDs of all pods with an entry above, so that changes of bound pods cost nothing. */
  readonly #followed = new Set<string>()

  isExpected(uid: string): boolean {
    return this.#expected.has(uid)
  }

  /**
   * Updates a pod.
   * @param mayPreempt whether a pod of lower priority has a node.
   * @returns the pods that are newly expected to be rejected.
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
      // A pod for which others make room says nothing about pods like it.
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

  /** The pod is gone or no longer pending. */
  forget(pod: Pod): void {
    const uid = pod.metadata.uid ?? ''
    if (!this.#followed.delete(uid)) return
    this.#judged.delete(uid)
    const groups = groupsOf(pod)
    this.#ends(uid, groups)
    for (const group of groups) removed(this.#refused, group, uid)
  }

  /** A decision includes all pods rejected so far: only the next rejection starts a new burst. */
  decided(): void {
    this.#refused.delete(burst)
  }

  #refuse(uid: string, groups: readonly string[]): readonly Pod[] {
    // The scheduler rejects the same pod again and again.
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

  #ends(uid: string, groups: readonly string[]): void {
    this.#expected.delete(uid)
    for (const group of groups) removed(this.#unseen, group, uid)
  }
}

/** Groups in which the rejection of one pod predicts that of the others. */
function groupsOf(pod: Pod): readonly string[] {
  const owner = controllerOf(pod)
  const template =
    owner !== undefined && templated.has(`${owner.apiVersion}/${owner.kind}`) ? [owner.uid] : []
  return (pod.spec.schedulerName ?? defaultScheduler) === defaultScheduler ? [...template, burst] : template
}

/** Whether the scheduler has yet to try the pod. */
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

/**
 * When the scheduler last updated each pending pod. Almost nobody else writes pending pods, so every change that is not a
 * nomination of this process counts.
 */
export class SchedulerUpdates {
  /** Unix milliseconds by pod UID. */
  readonly #updatedMs = new Map<string, number>()

  constructor({ pods }: Pick<Caches, 'pods'>, plans: PodPlans, clock: Pick<Clock, 'now'>) {
    pods.onChange((change) => {
      const { object } = change
      const uid = object.metadata.uid ?? ''
      if (change.kind === 'deleted' || (object.spec as Partial<Pod['spec']> | null)?.nodeName) {
        this.#updatedMs.delete(uid)
        return
      }
      const { resourceVersion } = object.metadata
      const isOwn = resourceVersion !== undefined && plans.written(uid)?.resourceVersion === resourceVersion
      const isNew = change.kind === 'added' || change.old.metadata.resourceVersion !== resourceVersion
      if (isNew && !isOwn) this.#updatedMs.set(uid, clock.now())
    })
  }

  /** Unix milliseconds; 0 for pods that are not pending. */
  lastMs(uid: string): number {
    return this.#updatedMs.get(uid) ?? 0
  }
}
