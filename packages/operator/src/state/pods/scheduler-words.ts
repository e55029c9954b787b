/** When the scheduler last said something about a pod that waits, as far as it shows. */
import type { Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import type { PodPlans } from './pod-plans.ts'

/**
 * Of pods without a node hardly anybody but the scheduler writes anything: each change that is not a nomination of
 * this process counts as its word. What it has said before this process began counts as said at first sight.
 */
export class SchedulerWords {
  /** Unix milliseconds by pod UID. */
  readonly #saidMs = new Map<string, number>()

  constructor({ pods }: Pick<Caches, 'pods'>, plans: PodPlans, clock: Pick<Clock, 'now'>) {
    pods.onChange((change) => {
      const { object } = change
      const uid = object.metadata.uid ?? ''
      if (change.kind === 'deleted' || (object.spec as Partial<Pod['spec']> | null)?.nodeName) {
        this.#saidMs.delete(uid)
        return
      }
      const { resourceVersion } = object.metadata
      const isOwn = resourceVersion !== undefined && plans.written(uid)?.resourceVersion === resourceVersion
      const isNews = change.kind === 'added' || change.old.metadata.resourceVersion !== resourceVersion
      if (isNews && !isOwn) this.#saidMs.set(uid, clock.now())
    })
  }

  /** Unix milliseconds; 0 of pods that do not wait. */
  lastMs(uid: string): number {
    return this.#saidMs.get(uid) ?? 0
  }
}
