/** `node.hydration`: the node class label on the Nodes of managed claims (lifecycle.md 10). */
import { kinds, nodeClassLabel, ownValue } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { isUnreadable } from '../state/readable.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'
import { isMoreThanHeartbeat } from '../state/nodes/node-changes.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes'>
  readonly state: Pick<ClusterState, 'claimOf' | 'nodeOf'>
}

/** Reconciles one Node. Without the label it would be neither drained nor repaired. */
export class NodeHydration implements ControllerSpec {
  readonly name = 'node.hydration'
  readonly concurrency = { least: 1000, most: 5000 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    enqueueChanged(caches.nodes, enqueue, isMoreThanHeartbeat)
    caches.nodeClaims.onChange((change) => {
      const node = isLifecycleChange(change) ? state.nodeOf(change.object) : undefined
      if (node !== undefined) enqueue(node.metadata.name)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, state, client } = this.#deps
    const node = caches.nodes.get({ name })
    const claim = node === undefined ? undefined : state.claimOf(node)
    if (node === undefined || claim === undefined || isUnreadable(node)) return done
    const ref = claim.spec.nodeClassRef
    const key = nodeClassLabel(ref)
    if (ownValue(node.metadata.labels, key) === ref.name) return done
    try {
      await client.patch(kinds.node, { name }, { metadata: { labels: { [key]: ref.name } } })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
    return done
  }
}
