/** Pods of one template: what the scheduler found about one of them holds for those it has yet to look at. */
import type { Pod } from '@tenon/api'
import { isActive, isProvisionable } from './pods.ts'

/** Controllers that make every pod from the same template, volumes and all. */
const templated: ReadonlySet<string> = new Set([
  'apps/v1/ReplicaSet',
  'batch/v1/Job',
  'v1/ReplicationController',
])

/**
 * Follows pods without a node by their controller. The scheduler refuses pods one by one, which takes it longer
 * than it took to make them; a decision about all of them need not wait for that. A twin is a pod that the
 * scheduler has not looked at while it has refused another one of the same ReplicaSet or Job. It stays one
 * until it has a node, is gone, or the scheduler has spoken.
 */
export class PodTwins {
  /** UIDs of pods that were refused and have no node, by the UID of their controller. */
  readonly #refused = new Map<string, Set<string>>()
  /** Pods that nothing is known about, by the UID of their controller and their own. */
  readonly #unseen = new Map<string, Map<string, Pod>>()
  readonly #twins = new Set<string>()

  has(uid: string): boolean {
    return this.#twins.has(uid)
  }

  /**
   * Takes in a pod as it is now.
   * @returns the pods that are twins from now on.
   */
  see(pod: Pod): readonly Pod[] {
    const uid = pod.metadata.uid ?? ''
    const owner = templateOf(pod)
    if (owner === undefined) return []
    if (isProvisionable(pod)) {
      this.#leave(uid, owner)
      added(this.#refused, owner, () => new Set<string>()).add(uid)
      const found = [...(this.#unseen.get(owner)?.values() ?? [])]
      this.#unseen.delete(owner)
      for (const twin of found) this.#twins.add(twin.metadata.uid ?? '')
      return found
    }
    if (!isUnseen(pod)) {
      this.#leave(uid, owner)
      return []
    }
    if (this.#twins.has(uid)) return []
    if (this.#refused.has(owner)) {
      this.#twins.add(uid)
      return [pod]
    }
    added(this.#unseen, owner, () => new Map<string, Pod>()).set(uid, pod)
    return []
  }

  /** The pod is gone. */
  forget(pod: Pod): void {
    const owner = templateOf(pod)
    if (owner !== undefined) this.#leave(pod.metadata.uid ?? '', owner)
  }

  #leave(uid: string, owner: string): void {
    this.#twins.delete(uid)
    for (const members of [this.#refused, this.#unseen]) {
      const own = members.get(owner)
      own?.delete(uid)
      if (own?.size === 0) members.delete(owner)
    }
  }
}

/** UID of the controller that makes all its pods alike. */
function templateOf({ metadata }: Pod): string | undefined {
  const owner = (metadata.ownerReferences ?? []).find(({ controller }) => controller === true)
  return owner !== undefined && templated.has(`${owner.apiVersion}/${owner.kind}`) ? owner.uid : undefined
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
