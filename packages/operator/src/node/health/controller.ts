/** `node.health`: replaces nodes that stay unhealthy, unless too many are (lifecycle.md 11). */
import type { CloudProvider } from '@tenon/provider'
import { labels, type Node, type NodeClaim, nodeClassLabel, ownValue } from '@tenon/api'
import { done, type EventRecorder, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { NodeRepair } from './repair.ts'
import { ailmentOf, isHealthChange } from './unhealthy.ts'
import { leftOf } from '../../state/pause.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import { isObserved } from '../../state/nodepools/observed-pools.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools' | 'nodes'>
  readonly state: Pick<ClusterState, 'brake' | 'claimOf'>
  readonly provider: Pick<CloudProvider, 'nodeClasses' | 'repairPolicies'>
  readonly events: EventRecorder
  readonly repair: NodeRepair
  readonly clock: Pick<Clock, 'now'>
}

/** Of the nodes considered, rounded up; with more, something else than the nodes is broken. */
const mostUnhealthy = 0.2
const blockedMs = 5 * 60_000
/** Until it is looked at again whether repair is still paused. */
const heldMs = 10_000
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
    const { caches, clock, provider, repair, state } = this.#deps
    const node = caches.nodes.get({ name })
    if (node === undefined || !this.#isManaged(node)) return done
    const claim = state.claimOf(node)
    const ailment = ailmentOf(node, provider.repairPolicies)
    if (claim === undefined || ailment === undefined) return done
    const leftMs = ailment.repairAtMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: leftMs }
    const pause = state.brake.holding(claim.metadata.labels?.[labels.nodePool] ?? '', 'repair')
    if (pause !== undefined) return { kind: 'after', delayMs: leftOf(pause, clock.now(), heldMs) }
    if (this.#isOnlyObserved(claim)) return { kind: 'after', delayMs: blockedMs }
    const scope = this.#scopeOf(node, claim)
    const unhealthy = scope.nodes.filter((each) => ailmentOf(each, provider.repairPolicies) !== undefined)
    if (unhealthy.length > Math.ceil(mostUnhealthy * scope.nodes.length)) {
      this.#reportBlocked(node, scope, unhealthy.length)
      return { kind: 'after', delayMs: blockedMs }
    }
    await repair.run(node, claim, ailment.conditionType)
    return done
  }

  #isManaged(node: Node): boolean {
    return this.#deps.provider.nodeClasses.some(
      (type) => ownValue(node.metadata.labels, nodeClassLabel(type)) !== undefined,
    )
  }

  #isOnlyObserved({ metadata }: NodeClaim): boolean {
    const pool = this.#deps.caches.nodePools.get({ name: metadata.labels?.[labels.nodePool] ?? '' })
    return pool !== undefined && isObserved(pool)
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

  #reportBlocked(node: Node, { nodes, name, uids = [] }: Scope, unhealthy: number): void {
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
}
