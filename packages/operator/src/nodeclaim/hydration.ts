/** `nodeclaim.hydration`: the node class label on claims of older versions (lifecycle.md 10). */
import { isLabelValue, karpenterKinds, nodeClassLabel, ownValue } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'isManaged'>
}

/** Reconciles the labels of one NodeClaim. */
export class NodeClaimHydration implements ControllerSpec {
  readonly name = 'nodeclaim.hydration'
  readonly concurrency = { least: 1000, most: 5000 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    enqueueChanged(this.#deps.caches.nodeClaims, enqueue, isLifecycleChange)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, state, client } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || !state.isManaged(claim)) return done
    const ref = claim.spec.nodeClassRef
    const key = nodeClassLabel(ref)
    // A name that cannot be the value of a label is told by the launch.
    if (ownValue(claim.metadata.labels, key) === ref.name || !isLabelValue(ref.name)) return done
    try {
      await client.patch(karpenterKinds.nodeClaim, { name }, { metadata: { labels: { [key]: ref.name } } })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
    return done
  }
}
