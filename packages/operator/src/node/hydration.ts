import { kinds, type Node, type NodeClass, nodeClassLabel, ownValue, type ResourceType } from '@tenon/api'
import { done, isKubeError, type KubeClient } from '@tenon/kube'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { isLifecycleChange, isMoreThanHeartbeat } from '../state/nodes/node-changes.ts'
import { isUnreadable } from '../state/readable.ts'

/**
 * `node.hydration`: adds the node class label to the Nodes of managed claims (lifecycle.md 10). Nodes without it are
 * neither drained nor repaired.
 */
export function nodeHydration(client: KubeClient, caches: Caches, state: ClusterState): ControllerSpec {
  return {
    name: 'node.hydration',
    concurrency: { least: 1000, most: 5000 },
    backoff: { baseMs: 100, capMs: 60_000 },
    perSecond: 10,
    watch(enqueue) {
      enqueueChanged(caches.nodes, enqueue, isMoreThanHeartbeat)
      caches.nodeClaims.onChange((change) => {
        const node = isLifecycleChange(change) ? state.nodeOf(change.object) : undefined
        if (node !== undefined) enqueue(node.metadata.name)
      })
    },
    async reconcile(name) {
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
    },
  }
}

/** Whether the Node has the label of one of the node classes. */
export function isManagedNode(node: Node, nodeClasses: readonly ResourceType<NodeClass>[]): boolean {
  return nodeClasses.some((type) => ownValue(node.metadata.labels, nodeClassLabel(type)) !== undefined)
}
