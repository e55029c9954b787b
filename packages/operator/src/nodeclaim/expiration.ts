import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { done, type KubeClient } from '@tenon/kube'
import type { PoolRules } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { poolOf } from '../state/nodepools/managed-pool.ts'
import { isObserved } from '../state/nodepools/observed-pools.ts'
import { poolWishes } from '../state/nodepools/pool-annotations.ts'
import { validatePool } from '../state/nodepools/pool-problems.ts'
import { isWhole } from '../state/readable.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'
import { leftOf } from '../state/pause.ts'
import { isSameValue } from '../state/same-value.ts'
import { expiryOf } from './expiry.ts'
import type { ClaimDeleter } from './lifecycle/delete-claim.ts'

/** Timers are not safe with longer delays. */
const longestWaitMs = 24 * 60 * 60_000
const invalidPoolMs = 60_000
/** A pause without an end is checked again after this, and when it changes. */
const longestHoldMs = 60_000

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools'>
  readonly client: Pick<KubeClient, 'get'>
  readonly state: Pick<ClusterState, 'brake' | 'isManaged' | 'poolWishes'>
  readonly provider: PoolRules
  readonly deleter: Pick<ClaimDeleter, 'delete'>
  readonly clock: Clock
  readonly logger: Logger
}

/** `nodeclaim.expiration`: deletes claims that have reached their age (lifecycle.md 5). */
export function nodeClaimExpiration(deps: Dependencies): ControllerSpec {
  const { caches, client, state, provider, deleter, clock, logger } = deps
  /**
   * How long the claim stays by its NodePool as the API server has it now; 0 if it goes. The cache may not show yet, or
   * no longer, that the NodePool asks for soft expiration, which all nodes past their age rely on.
   */
  const freshHoldMs = async (claim: NodeClaim): Promise<number> => {
    const pool = await client.get(karpenterKinds.nodePool, { name: poolOf(claim) })
    if (pool === undefined) return 0
    if (!isWhole(karpenterKinds.nodePool.kind, pool) || isObserved(pool)) return invalidPoolMs
    if (validatePool(pool, provider).length > 0) return invalidPoolMs
    const leftMs = expiryOf(claim, state.poolWishes(pool)).forcedMs - clock.now()
    return Math.min(Math.max(0, leftMs), longestHoldMs)
  }
  return {
    name: 'nodeclaim.expiration',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      enqueueChanged(caches.nodeClaims, enqueue, isLifecycleChange)
      caches.nodePools.onChange((change) => {
        const { name } = change.object.metadata
        const before = change.kind === 'updated' ? poolWishes(change.old) : {}
        if (isSameValue(before, poolWishes(change.object))) return
        for (const { metadata } of caches.nodeClaims.byIndex(indexes.byNodePool, name)) enqueue(metadata.name)
      })
      state.brake.changes.add((pool) => {
        const claims = caches.nodeClaims.list().filter((claim) => pool === '' || poolOf(claim) === pool)
        for (const { metadata } of claims) enqueue(metadata.name)
      })
    },
    async reconcile(name) {
      const claim = caches.nodeClaims.get({ name })
      if (claim === undefined || claim.metadata.deletionTimestamp !== undefined || !state.isManaged(claim))
        return done
      const pool = caches.nodePools.get({ name: poolOf(claim) })
      const { forcedMs } = expiryOf(claim, pool === undefined ? {} : state.poolWishes(pool))
      if (!Number.isFinite(forcedMs)) return done
      const leftMs = forcedMs - clock.now()
      if (leftMs > 0) return { kind: 'after', delayMs: Math.min(leftMs, longestWaitMs) }
      const pause = state.brake.holding(poolOf(claim), 'expiration')
      if (pause !== undefined) return { kind: 'after', delayMs: leftOf(pause, clock.now(), longestHoldMs) }
      // An invalid or observed pool launches no nodes for the pods of this one.
      if (pool !== undefined && (isObserved(pool) || validatePool(pool, provider).length > 0))
        return { kind: 'after', delayMs: invalidPoolMs }
      const heldMs = await freshHoldMs(claim)
      if (heldMs > 0) return { kind: 'after', delayMs: heldMs }
      if (await deleter.delete(claim, 'expired')) {
        logger.info('deleting expired nodeclaim', {
          NodeClaim: { name },
          expireAfter: claim.spec.expireAfter,
        })
      }
      return done
    },
  }
}
