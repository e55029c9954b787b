/** `nodeclaim.hydration`: the node class label on claims and Nodes of older versions (lifecycle.md 10). */
import { karpenterKinds, kinds, nodeClassLabel } from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'

/** Reconciles the labels of one NodeClaim and its Node. */
export class NodeClaimHydration {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, state, client } = this.#context
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || !state.isManaged(claim)) return done
    const ref = claim.spec.nodeClassRef
    const key = nodeClassLabel(ref)
    const patch = { metadata: { labels: { [key]: ref.name } } }
    const node = state.nodeOf(claim)
    try {
      if (claim.metadata.labels?.[key] !== ref.name)
        await client.patch(karpenterKinds.nodeClaim, { name }, patch)
      if (node !== undefined && node.metadata.labels?.[key] !== ref.name) {
        await client.patch(kinds.node, { name: node.metadata.name }, patch)
      }
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
    return done
  }
}
