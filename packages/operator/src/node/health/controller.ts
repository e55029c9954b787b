/** `node.health`: replaces nodes that stay unhealthy, unless too many are (lifecycle.md 11). */
import type { CloudProvider } from '@tenon/provider'
import {
  annotations,
  karpenterKinds,
  labels,
  type Node,
  type NodeClaim,
  nodeClassLabel,
  ownValue,
} from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { deleteClaim } from '../../nodeclaim/lifecycle/delete-claim.ts'
import { ailmentOf, isHealthChange, snakeCase } from './unhealthy.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
}

/** Of the nodes considered, rounded up; with more, something else than the nodes is broken. */
const mostUnhealthy = 0.2
const blockedMs = 5 * 60_000
const blockedEventTtlMs = 15 * 60_000

/** The nodes among which a share of unhealthy ones is looked for. */
interface Scope {
  readonly nodes: readonly Node[]
  readonly name: string
  /** Absent where a NodePool that is gone leaves nothing to tell anybody. */
  readonly uids: readonly string[] | undefined
}

/** Reconciles the health of one Node. */
export class NodeHealth implements ControllerSpec {
  readonly name = 'node.health'
  readonly concurrency = { least: 10, most: 1000 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    enqueueChanged(this.#deps.caches.nodes, enqueue, isHealthChange)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, clock, provider, state } = this.#deps
    const node = caches.nodes.get({ name })
    if (node === undefined || !this.#isManaged(node)) return done
    const claim = state.claimOf(node)
    const ailment = ailmentOf(node, provider.repairPolicies)
    if (claim === undefined || ailment === undefined) return done
    const leftMs = ailment.repairAtMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: leftMs }
    const scope = this.#scopeOf(node, claim)
    const unhealthy = scope.nodes.filter((each) => ailmentOf(each, provider.repairPolicies) !== undefined)
    if (unhealthy.length > Math.ceil(mostUnhealthy * scope.nodes.length)) {
      this.#tellBlocked(node, scope, unhealthy.length)
      return { kind: 'after', delayMs: blockedMs }
    }
    await this.#repair(node, claim, ailment.conditionType)
    return done
  }

  #isManaged(node: Node): boolean {
    return this.#deps.provider.nodeClasses.some(
      (type) => ownValue(node.metadata.labels, nodeClassLabel(type)) !== undefined,
    )
  }

  /** The nodes of the claim's NodePool; those of the whole cluster for a claim without one. */
  #scopeOf(node: Node, claim: NodeClaim): Scope {
    const { caches } = this.#deps
    const uids = [node.metadata.uid ?? '', claim.metadata.uid ?? '']
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    if (pool === '') return { nodes: caches.nodes.list(), name: 'the cluster', uids }
    const known = caches.nodePools.get({ name: pool })
    return {
      nodes: caches.nodes.list().filter(({ metadata }) => metadata.labels?.[labels.nodePool] === pool),
      name: `NodePool ${pool}`,
      uids: known === undefined ? undefined : [...uids, known.metadata.uid ?? ''],
    }
  }

  #tellBlocked(node: Node, { nodes, name, uids = [] }: Scope, unhealthy: number): void {
    for (const uid of uids) {
      this.#deps.events.record({
        object: node,
        type: 'Warning',
        reason: 'NodeRepairBlocked',
        message: `More than ${100 * mostUnhealthy}% of the nodes of ${name} are unhealthy (${unhealthy} of ${nodes.length}); none is replaced`,
        dedupe: [uid],
        dedupeTtlMs: blockedEventTtlMs,
      })
    }
  }

  async #repair(node: Node, claim: NodeClaim, conditionType: string): Promise<void> {
    const { logger, metrics } = this.#deps
    try {
      await this.#endGracePeriod(claim)
    } catch (error) {
      if (isKubeError(error, 'notFound')) return
      throw error
    }
    if (claim.metadata.deletionTimestamp !== undefined) return
    const tags = node.metadata.labels ?? {}
    if (!(await deleteClaim(this.#deps, claim, 'unhealthy', tags))) return
    logger.info('deleting unhealthy node', {
      Node: { name: node.metadata.name },
      NodeClaim: { name: claim.metadata.name },
      reason: conditionType,
    })
    metrics.nodeClaimsUnhealthyDisrupted.inc({
      condition: snakeCase(conditionType),
      nodepool: tags[labels.nodePool] ?? '',
      capacity_type: tags[labels.capacityType] ?? '',
      image_id: claim.status?.imageID ?? '',
    })
  }

  /** A node that is not well cannot be drained politely: its pods get no grace beyond this moment. */
  async #endGracePeriod({ metadata }: NodeClaim): Promise<void> {
    const { client, clock, logger } = this.#deps
    const key = annotations.terminationTimestamp
    const now = clock.now()
    if (Date.parse(metadata.annotations?.[key] ?? '') <= now) return
    const deadline = rfc3339(now)
    await client.patch(
      karpenterKinds.nodeClaim,
      { name: metadata.name },
      { metadata: { annotations: { [key]: deadline } } },
    )
    logger.info('annotated nodeclaim', { NodeClaim: { name: metadata.name }, [key]: deadline })
  }
}
