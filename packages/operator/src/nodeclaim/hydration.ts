import { isLabelValue, karpenterKinds, nodeClassLabel, ownValue } from '@tenon/api'
import { done, isKubeError, type KubeClient } from '@tenon/kube'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'

/** `nodeclaim.hydration`: adds the node class label to claims of older versions (lifecycle.md 10). */
export function nodeClaimHydration(client: KubeClient, caches: Caches, state: ClusterState): ControllerSpec {
  return {
    name: 'nodeclaim.hydration',
    concurrency: { least: 1000, most: 5000 },
    backoff: { baseMs: 100, capMs: 60_000 },
    watch(enqueue) {
      enqueueChanged(caches.nodeClaims, enqueue, isLifecycleChange)
    },
    async reconcile(name) {
      const claim = caches.nodeClaims.get({ name })
      if (claim === undefined || !state.isManaged(claim)) return done
      const ref = claim.spec.nodeClassRef
      const key = nodeClassLabel(ref)
      // The launch reports names that cannot be label values.
      if (ownValue(claim.metadata.labels, key) === ref.name || !isLabelValue(ref.name)) return done
      try {
        await client.patch(karpenterKinds.nodeClaim, { name }, { metadata: { labels: { [key]: ref.name } } })
      } catch (error) {
        if (!isKubeError(error, 'notFound')) throw error
      }
      return done
    },
  }
}
