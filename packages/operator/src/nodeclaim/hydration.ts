import {
  isLabelValue,
  karpenterKinds,
  type NodeClaim,
  nodeClassLabel,
  type ObjectMeta,
  ownValue,
} from '@tenon/api'
import { done, isKubeError, type KubeClient } from '@tenon/kube'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { controllerAnnotation } from '../state/nodepools/node-pool-selection.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'

/**
 * `nodeclaim.hydration`: adds the node class label to claims of older versions (lifecycle.md 10), and the name of this
 * controller to claims of NodePools that it has taken.
 */
export function nodeClaimHydration(client: KubeClient, caches: Caches, state: ClusterState): ControllerSpec {
  return {
    name: 'nodeclaim.hydration',
    concurrency: { least: 1000, most: 5000 },
    backoff: { baseMs: 100, capMs: 60_000 },
    watch(enqueue) {
      enqueueChanged(caches.nodeClaims, enqueue, isLifecycleChange)
      caches.nodePools.onChange(({ object }) => {
        for (const claim of caches.nodeClaims.byIndex(indexes.byNodePool, object.metadata.name))
          if (state.controllerToNote(claim) !== undefined) enqueue(claim.metadata.name)
      })
    },
    async reconcile(name) {
      const claim = caches.nodeClaims.get({ name })
      if (claim === undefined) return done
      const metadata = missingIn(claim, state)
      if (metadata === undefined) return done
      try {
        await client.patch(karpenterKinds.nodeClaim, { name }, { metadata })
      } catch (error) {
        if (!isKubeError(error, 'notFound')) throw error
      }
      return done
    },
  }
}

function missingIn(claim: NodeClaim, state: ClusterState): Partial<ObjectMeta> | undefined {
  const controller = state.controllerToNote(claim)
  if (controller !== undefined) return { annotations: { [controllerAnnotation]: controller } }
  if (!state.isManaged(claim)) return undefined
  const { metadata, spec } = claim
  const ref = spec.nodeClassRef
  const key = nodeClassLabel(ref)
  // The launch reports names that cannot be label values.
  const isThere = ownValue(metadata.labels, key) === ref.name || !isLabelValue(ref.name)
  return isThere ? undefined : { labels: { [key]: ref.name } }
}
