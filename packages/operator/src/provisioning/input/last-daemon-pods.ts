/** What the last pod of each DaemonSet asked for, for the time in which there is none. */
import { controllerOf, type DaemonSet, type Pod } from '@tenon/api'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isDaemonPod } from '../../state/pods/pods.ts'

interface LastPod {
  readonly pod: Pod
  /** Of the DaemonSet as the pod was first seen: what another template makes is another matter. */
  readonly generation: number
}

/**
 * Requests may come from a webhook or a LimitRange that nobody reads: only a pod tells. Where nodes come and go, the
 * pods are gone with the last node just when the next one is decided about.
 */
export class LastDaemonPods {
  readonly #caches: Pick<Caches, 'daemonSets'>
  /** By UID of the DaemonSet. */
  readonly #last = new Map<string, LastPod>()

  constructor(caches: Pick<Caches, 'daemonSets' | 'pods'>, state: Pick<ClusterState, 'isWellFormed'>) {
    this.#caches = caches
    caches.pods.onChange(({ object }) => {
      if (state.isWellFormed(object) && isDaemonPod(object)) this.#see(object)
    })
    caches.daemonSets.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#last.delete(object.metadata.uid ?? '')
    })
  }

  #see(pod: Pod): void {
    const owner = controllerOf(pod)
    if (owner === undefined) return
    const known = this.#last.get(owner.uid)
    if (known !== undefined && known.pod.metadata.uid === pod.metadata.uid) {
      this.#last.set(owner.uid, { ...known, pod })
      return
    }
    if (known !== undefined && createdOf(pod) < createdOf(known.pod)) return
    const { namespace = '' } = pod.metadata
    const daemonSet = this.#caches.daemonSets.get({ namespace, name: owner.name })
    if (daemonSet?.metadata.uid === owner.uid)
      this.#last.set(owner.uid, { pod, generation: daemonSet.metadata.generation ?? 0 })
  }

  /** Undefined when there was none since its template is as it is. */
  of({ metadata: { uid = '', generation = 0 } }: DaemonSet): Pod | undefined {
    const last = this.#last.get(uid)
    return last?.generation === generation ? last?.pod : undefined
  }
}

export const createdOf = ({ metadata }: Pod): string => metadata.creationTimestamp ?? ''
