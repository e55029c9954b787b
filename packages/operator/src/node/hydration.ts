/** `node.hydration`: the node class label on the Nodes of managed claims (lifecycle.md 10). */
import { kinds, nodeClassLabel, ownValue } from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import type { OperatorContext } from '../context.ts'
import { isUnreadable } from '../cluster/readable.ts'

/** Reconciles one Node. Without the label it would be neither drained nor repaired. */
export class NodeHydration {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, state, client } = this.#context
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
