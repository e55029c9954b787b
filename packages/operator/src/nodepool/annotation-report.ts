import { done, type EventRecorder } from '@tenon/kube'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { poolAnnotationProblems } from '../state/nodepools/pool-annotations.ts'

const dedupeTtlMs = 60 * 60_000

/** `nodepool.annotations`: records events about annotations that cannot be read. */
export function nodePoolAnnotations(
  caches: Caches,
  state: Pick<ClusterState, 'managedPool'>,
  events: EventRecorder,
): ControllerSpec {
  return {
    name: 'nodepool.annotations',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      enqueueChanged(caches.nodePools, enqueue)
    },
    reconcile(name) {
      const pool = state.managedPool(name)
      if (pool === undefined) return Promise.resolve(done)
      for (const { field, message, fix } of poolAnnotationProblems(pool))
        events.record({
          object: pool,
          type: 'Warning',
          reason: 'AnnotationIgnored',
          message: `${field}: ${message}; ${fix ?? ''}`,
          dedupe: [pool.metadata.uid ?? name, field, message],
          dedupeTtlMs,
        })
      return Promise.resolve(done)
    },
  }
}
