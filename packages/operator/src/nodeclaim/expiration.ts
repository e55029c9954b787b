/** `nodeclaim.expiration`: deletes claims that have reached their age (lifecycle.md 5). */
import type { Clock, Logger } from '@tenon/runtime'
import type { CloudProvider, PoolRules } from '@tenon/provider'
import { labels, type NodeClaim, parseNillableDuration } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import { isObserved } from '../state/nodepools/observed-pools.ts'
import { validatePool } from '../state/nodepools/pool-problems.ts'
import { leftOf } from '../state/pause.ts'
import type { ClaimDeleter } from './lifecycle/delete-claim.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools'>
  readonly state: Pick<ClusterState, 'brake' | 'isManaged'>
  readonly provider: PoolRules & Pick<CloudProvider, 'nodeClasses'>
  readonly deleter: ClaimDeleter
  readonly clock: Clock
  readonly logger: Logger
}

/** Longest wait a timer takes safely; a longer one is simply looked at again. */
const longestWaitMs = 24 * 60 * 60_000
/** Nodes of a pool that is not valid, or only observed, stay, as it can launch none for their pods. */
const invalidPoolMs = 60_000
/** A pause without an end is looked at again after this, and when it changes. */
const longestHoldMs = 60_000

/** Reconciles the age of one NodeClaim. */
export class NodeClaimExpiration implements ControllerSpec {
  readonly name = 'nodeclaim.expiration'
  readonly concurrency = { least: 1, most: 1 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    enqueueChanged(caches.nodeClaims, enqueue, isLifecycleChange)
    state.brake.changes.add((pool) => {
      const claims = caches.nodeClaims.list().filter((claim) => pool === '' || poolOf(claim) === pool)
      for (const { metadata } of claims) enqueue(metadata.name)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, state, clock, deleter, logger, provider } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined || !state.isManaged(claim))
      return done
    const expiresMs = expiryOf(claim)
    if (!Number.isFinite(expiresMs)) return done
    const leftMs = expiresMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: Math.min(leftMs, longestWaitMs) }
    const pause = state.brake.holding(poolOf(claim), 'expiration')
    if (pause !== undefined) return { kind: 'after', delayMs: leftOf(pause, clock.now(), longestHoldMs) }
    const pool = caches.nodePools.get({ name: poolOf(claim) })
    if (pool !== undefined && (isObserved(pool) || validatePool(pool, provider).length > 0))
      return { kind: 'after', delayMs: invalidPoolMs }
    if (await deleter.delete(claim, 'expired')) {
      logger.info('deleting expired nodeclaim', { NodeClaim: { name }, expireAfter: claim.spec.expireAfter })
    }
    return done
  }
}

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

function expiryOf(claim: NodeClaim): number {
  const after = parseNillableDuration(claim.spec.expireAfter)
  return after === undefined
    ? Number.POSITIVE_INFINITY
    : Date.parse(claim.metadata.creationTimestamp ?? '') + after
}
