import { done } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { poolOf } from '../state/nodepools/managed-pool.ts'
import { isObserved } from '../state/nodepools/observed-pools.ts'
import { poolWishes } from '../state/nodepools/pool-annotations.ts'
import { validatePool } from '../state/nodepools/pool-problems.ts'
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
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly deleter: ClaimDeleter
  readonly clock: Clock
  readonly logger: Logger
}

/** `nodeclaim.expiration`: deletes claims that have reached their age (lifecycle.md 5). */
export function nodeClaimExpiration(deps: Dependencies): ControllerSpec {
  const { caches, state, provider, deleter, clock, logger } = deps
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
