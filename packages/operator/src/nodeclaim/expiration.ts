/** `nodeclaim.expiration`: deletes claims that have reached their age (lifecycle.md 5). */
import { labels, type NodeClaim, parseNillableDuration } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import type { OperatorContext } from '../context.ts'
import { validatePool } from '../cluster/nodepools/pool-problems.ts'
import { deleteClaim } from './lifecycle/delete-claim.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { isOfItsLife } from '../cluster/nodes/claim-changes.ts'

/** Longest wait a timer takes safely; a longer one is simply looked at again. */
const longestWaitMs = 24 * 60 * 60_000
/** Nodes of a pool that is not valid stay, as it can launch none for their pods. */
const invalidPoolMs = 60_000

/** Reconciles the age of one NodeClaim. */
export class NodeClaimExpiration implements ControllerSpec {
  readonly name = 'nodeclaim.expiration'
  readonly concurrency = { least: 1, most: 1 }
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  watch(enqueue: Enqueue): void {
    enqueueChanged(this.#context.caches.nodeClaims, enqueue, isOfItsLife)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, state, clock, logger, provider } = this.#context
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined || !state.isManaged(claim))
      return done
    const expiresMs = expiryOf(claim)
    if (!Number.isFinite(expiresMs)) return done
    const leftMs = expiresMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: Math.min(leftMs, longestWaitMs) }
    const pool = caches.nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    if (pool !== undefined && validatePool(pool, provider).length > 0)
      return { kind: 'after', delayMs: invalidPoolMs }
    if (await deleteClaim(this.#context, claim, 'expired')) {
      logger.info('deleting expired nodeclaim', { NodeClaim: { name }, expireAfter: claim.spec.expireAfter })
    }
    return done
  }
}

function expiryOf(claim: NodeClaim): number {
  const after = parseNillableDuration(claim.spec.expireAfter)
  return after === undefined
    ? Number.POSITIVE_INFINITY
    : Date.parse(claim.metadata.creationTimestamp ?? '') + after
}
