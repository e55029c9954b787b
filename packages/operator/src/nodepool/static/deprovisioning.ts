import type { Clock, Logger } from '@tenon/runtime'
import { counted, karpenterKinds, labels, type NodeClaim, parseNillableDuration, type Pod } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { inParallel } from '../../in-parallel.ts'
import { isUnreadable } from '../../state/readable.ts'
import { isResized, staticPool, staticPoolName, validStaticPool } from './static-pools.ts'
import type { CloudProvider } from '@tenon/provider'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { doNotDisrupt, evictionCost, isDaemonPod } from '../../state/pods/pods.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly clock: Clock
  readonly logger: Logger
}

const settledMs = 60_000
const parallelDeletes = 20

/** `static.deprovisioning`: deletes surplus claims of static NodePools, whatever budgets and pods say (cluster-state.md 15.4). */
export class StaticDeprovisioning implements ControllerSpec {
  readonly name = 'static.deprovisioning'
  readonly concurrency = { least: 10, most: 10 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches } = this.#deps
    enqueueChanged(caches.nodePools, enqueue, isResized)
    caches.nodeClaims.onChange((change) => {
      const pool = staticPoolName(caches, change.object)
      if (pool !== undefined && change.kind === 'added') enqueue(pool)
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { state } = this.#deps
    if (this.#excess(name) > 0) {
      const unlaunched = await this.#unlaunched(name, signal)
      // Counted again, as claims may have been deleted meanwhile.
      const { active } = state.poolClaims.of(name)
      const surplus = this.#victims(active, unlaunched).slice(0, Math.max(0, this.#excess(name)))
      await this.#delete(surplus, signal)
    }
    return staticPool(state, name) === undefined ? done : { kind: 'after', delayMs: settledMs }
  }

  #excess(name: string): number {
    const { provider, state } = this.#deps
    const pool = validStaticPool(state, provider, name)
    if (pool === undefined) return 0
    return state.poolClaims.of(name).active.length - pool.spec.replicas
  }

  /** Names of claims without an instance by the API server; none if the list fails. */
  async #unlaunched(name: string, signal: AbortSignal): Promise<readonly string[]> {
    const { client, logger } = this.#deps
    const labelSelector = { matchLabels: { [labels.nodePool]: name } }
    try {
      const claims = await client.list(karpenterKinds.nodeClaim, { labelSelector, signal })
      return claims
        .filter(
          ({ metadata, status }) =>
            metadata.deletionTimestamp === undefined && (status?.providerID ?? '') === '',
        )
        .map(({ metadata }) => metadata.name)
    } catch (error) {
      signal.throwIfAborted()
      logger.error('listing the nodeclaims of a nodepool failed', { NodePool: { name }, error })
      return []
    }
  }

  /** The active claims in the order of deletion. */
  #victims(active: readonly NodeClaim[], unlaunched: readonly string[]): readonly NodeClaim[] {
    const { state, clock } = this.#deps
    const readable = active.filter((claim) => !isUnreadable(claim))
    const byName = new Map(readable.map((claim) => [claim.metadata.name, claim]))
    const nodes = state
      .stateNodes()
      .filter(
        ({ claim, isMarkedForDeletion }) => !isMarkedForDeletion && byName.has(claim?.metadata.name ?? ''),
      )
      .map((stateNode) => {
        const name = stateNode.node?.metadata.name ?? ''
        return { stateNode, pods: [...state.podsOn(name), ...state.nominations.arrivingAt(name)] }
      })
    return [
      ...unlaunched.flatMap((name) => byName.get(name) ?? []),
      ...inOrderOfLoss(nodes, clock.now(), state.windows).flatMap(({ claim }) => claim ?? []),
    ]
  }

  /** @throws AggregateError after all were tried. */
  async #delete(claims: readonly NodeClaim[], signal: AbortSignal): Promise<void> {
    const { client, logger, state } = this.#deps
    const failures = await inParallel(claims, parallelDeletes, async ({ metadata: { name, uid } }) => {
      const options = { signal, ...(uid !== undefined && { preconditionUid: uid }) }
      try {
        await client.delete(karpenterKinds.nodeClaim, { name }, options)
      } catch (error) {
        // A conflict means that the name belongs to another claim by now.
        if (isKubeError(error, 'notFound', 'conflict')) return
        throw error
      }
      state.poolClaims.markDeleting(name)
      logger.info('deleting surplus nodeclaim of a static nodepool', { NodeClaim: { name } })
    })
    if (failures.length === 0) return
    const [first] = failures
    throw new AggregateError(
      failures,
      `deleting ${counted(failures.length, 'NodeClaim')}: ${first instanceof Error ? first.message : String(first)}`,
    )
  }
}

/** A node with the pods that are bound to it, including those that ended, or nominated for it. */
interface LoadedNode {
  readonly stateNode: StateNode
  readonly pods: readonly Pod[]
}

interface Loss extends LoadedNode {
  readonly isEmpty: boolean
  readonly isProtected: boolean
  readonly cost: number
}

/**
 * Empty nodes first, then those without protected pods, then those with the lowest eviction cost for the lifetime that is
 * left; of equals, those that joined last, then by name.
 */
function inOrderOfLoss(
  stateNodes: readonly LoadedNode[],
  nowMs: number,
  windows: ClusterState['windows'],
): readonly StateNode[] {
  const losses = stateNodes.map(({ stateNode, pods }): Loss => {
    const isProtected = pods.some((pod) => doNotDisrupt(pod, nowMs, windows).kind === 'active')
    return {
      stateNode,
      pods,
      isProtected,
      isEmpty: pods.every(isDaemonPod) && !isProtected,
      cost: pods.reduce((sum, pod) => sum + evictionCost(pod), 0) * lifetimeRemaining(stateNode.claim, nowMs),
    }
  })
  return losses.toSorted(compareLosses).map(({ stateNode }) => stateNode)
}

function compareLosses(a: Loss, b: Loss): number {
  if (a.isEmpty !== b.isEmpty) return a.isEmpty ? -1 : 1
  if (!a.isEmpty && a.isProtected !== b.isProtected) return a.isProtected ? 1 : -1
  if (!a.isEmpty && a.cost !== b.cost) return a.cost - b.cost
  return readiness(a.stateNode) - readiness(b.stateNode) || (a.stateNode.name < b.stateNode.name ? -1 : 1)
}

/** 0 before it is a node, 2 when pods may run on it. */
function readiness({ node, isInitialized }: StateNode): number {
  return node === undefined ? 0 : isInitialized ? 2 : 1
}

/** From 1 for a new instance to 0 for one that expires now; 1 for one that never does. */
function lifetimeRemaining(claim: NodeClaim | undefined, nowMs: number): number {
  const expireAfterMs = parseNillableDuration(claim?.spec.expireAfter)
  if (expireAfterMs === undefined || !Number.isFinite(expireAfterMs)) return 1
  if (expireAfterMs <= 0) return 0
  const ageMs = nowMs - Date.parse(claim?.metadata.creationTimestamp ?? '')
  return Number.isNaN(ageMs) ? 1 : Math.min(1, Math.max(0, (expireAfterMs - ageMs) / expireAfterMs))
}
