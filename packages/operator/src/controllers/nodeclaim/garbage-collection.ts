/** `nodeclaim.garbagecollection`: deletes claims whose machine is gone (lifecycle.md 6). */
import { isConditionTrue } from '@tenon/api'
import type { ReconcileResult } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'
import { isNodeReady } from '../../state/state-node.ts'
import { deleteClaim } from '../nodeclaim-lifecycle/delete-claim.ts'

const periodMs = 2 * 60_000

/** Compares all claims with the machines of the cloud. */
export class NodeClaimGarbageCollection {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { caches, state, provider, logger } = this.#context
    // Claims first: one launched between the two lists must not look as if it had no machine. A cache that is
    // behind only knows of fewer launches.
    const claims = caches.nodeClaims.list().filter((claim) => state.isManaged(claim))
    const instances = await provider.list(signal)
    const alive = new Set(instances.filter(({ deleting }) => !deleting).map(({ providerID }) => providerID))
    for (const claim of claims) {
      if (claim.metadata.deletionTimestamp !== undefined || !isConditionTrue(claim, 'Registered')) continue
      if (alive.has(claim.status?.providerID ?? '')) continue
      const node = state.nodeOf(claim)
      if (node !== undefined && isNodeReady(node)) continue
      logger.info('deleting nodeclaim whose instance is gone', {
        NodeClaim: { name: claim.metadata.name },
        'provider-id': claim.status?.providerID,
      })
      await deleteClaim(this.#context, claim, 'garbage_collected')
    }
    return { kind: 'after', delayMs: periodMs }
  }
}
