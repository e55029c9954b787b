import { annotations, karpenterKinds, kinds, labels, type Node, type NodeClaim } from '@tenon/api'
import { type Change, done, isKubeError, type ReconcileResult } from '@tenon/kube'
import type { CloudProvider, RepairPolicy } from '@tenon/provider'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import type { Kubernetes } from '../kubernetes.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { isObserved } from '../state/nodepools/observed-pools.ts'
import { outOfServiceBy } from '../state/nodes/state-node.ts'
import { leftOf } from '../state/pause.ts'
import { isManagedNode } from './hydration.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly deleter: ClaimDeleter
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
}

/** If a larger share of nodes is unhealthy, rounded up, something other than the nodes is broken. */
export const mostUnhealthy = 0.2
const blockedMs = 5 * 60_000
const pausedPollMs = 10_000
const blockedEventTtlMs = 15 * 60_000

/** The nodes of which at most a share may be unhealthy. */
interface Scope {
  readonly nodes: readonly Node[]
  readonly name: string
  /** UIDs of the objects that the event is deduplicated by; undefined if the NodePool is gone. */
  readonly uids: readonly string[] | undefined
}

/** `node.health`: replaces nodes that stay unhealthy, unless too many are (lifecycle.md 11). */
export class NodeHealth implements ControllerSpec {
  readonly name = 'node.health'
  readonly concurrency = { least: 10, most: 1000 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies
  /** Names of nodes with a new event that brought a condition whose toleration was over already. */
  readonly #overdue = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    this.#deps.kubernetes.caches.nodes.onChange((change) => {
      if (!isHealthChange(change)) return
      if (change.kind === 'updated' && this.#isOverdue(change.object) && !this.#isOverdue(change.old))
        this.#overdue.add(change.object.metadata.name)
      enqueue(change.object.metadata.name)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { clock, kubernetes, provider, state } = this.#deps
    const { nodePools, nodes } = kubernetes.caches
    const node = nodes.get({ name })
    const isNew = this.#overdue.delete(name)
    if (node === undefined || !isManagedNode(node, provider.nodeClasses)) return done
    const claim = state.claimOf(node)
    const ailment = ailmentOf(node, provider.repairPolicies)
    if (claim === undefined || ailment === undefined) return done
    // Whoever takes the node out of service takes care of it; every change of its conditions comes back here.
    if (outOfServiceBy(node) !== undefined) return done
    const leftMs = ailment.repairAtMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: leftMs }
    const poolName = claim.metadata.labels?.[labels.nodePool] ?? ''
    const pause = state.brake.holding(poolName, 'repair')
    if (pause !== undefined) return { kind: 'after', delayMs: leftOf(pause, clock.now(), pausedPollMs) }
    const pool = nodePools.get({ name: poolName })
    if (pool !== undefined && isObserved(pool)) return { kind: 'after', delayMs: blockedMs }
    const scope = this.#scopeOf(node, claim)
    const unhealthy = scope.nodes.filter((each) => ailmentOf(each, provider.repairPolicies) !== undefined)
    if (unhealthy.length > Math.ceil(mostUnhealthy * scope.nodes.length)) {
      this.#reportBlocked(node, scope, unhealthy.length)
      return { kind: 'after', delayMs: blockedMs }
    }
    if (isNew || (await this.#isStillIll(node)))
      await deleteUnhealthy(this.#deps, node, claim, ailment.conditionType)
    return done
  }

  #isOverdue(node: Node): boolean {
    const { clock, provider } = this.#deps
    const ailment = ailmentOf(node, provider.repairPolicies)
    return ailment !== undefined && ailment.repairAtMs <= clock.now()
  }

  /**
   * The watch may be late, and the node well again (reports-2.md 1). An event that brings a condition which is overdue
   * already is as good as a read: simulated kubelets turn such a node Ready again within a moment, and it is to be
   * replaced all the same (operations.md, trap 18).
   */
  async #isStillIll({ metadata }: Node): Promise<boolean> {
    const node = await this.#deps.kubernetes.client.get(kinds.node, { name: metadata.name })
    return node !== undefined && node.metadata.uid === metadata.uid && this.#isOverdue(node)
  }

  /** The nodes of the claim's NodePool; those of the whole cluster for a claim without one. */
  #scopeOf(node: Node, claim: NodeClaim): Scope {
    const { nodePools, nodes } = this.#deps.kubernetes.caches
    const uids = [node.metadata.uid ?? '', claim.metadata.uid ?? '']
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    if (pool === '') return { nodes: nodes.list(), name: 'the cluster', uids }
    const known = nodePools.get({ name: pool })
    return {
      nodes: nodes.list().filter(({ metadata }) => metadata.labels?.[labels.nodePool] === pool),
      name: `NodePool ${pool}`,
      uids: known === undefined ? undefined : [...uids, known.metadata.uid ?? ''],
    }
  }

  #reportBlocked(node: Node, { nodes, name, uids = [] }: Scope, unhealthy: number): void {
    for (const uid of uids) {
      this.#deps.kubernetes.events.record({
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

type DeletionParts = Pick<Dependencies, 'clock' | 'deleter' | 'kubernetes' | 'logger' | 'metrics'>

/** Deletes the claim with a deadline of now, as the kubelet of an unhealthy node may never stop its pods. */
async function deleteUnhealthy(
  deps: DeletionParts,
  node: Node,
  claim: NodeClaim,
  conditionType: string,
): Promise<void> {
  try {
    await endGracePeriod(deps, claim)
  } catch (error) {
    if (isKubeError(error, 'notFound')) return
    throw error
  }
  if (claim.metadata.deletionTimestamp !== undefined) return
  if (!(await deps.deleter.delete(claim, 'unhealthy', node.metadata.labels ?? {}))) return
  deps.logger.info('deleting unhealthy node', {
    Node: { name: node.metadata.name },
    NodeClaim: { name: claim.metadata.name },
    reason: conditionType,
  })
  countUnhealthy(deps, node, claim, conditionType)
}

export function countUnhealthy(
  { metrics }: Pick<Dependencies, 'metrics'>,
  { metadata }: Node,
  claim: NodeClaim,
  conditionType: string,
): void {
  metrics.nodeClaimsUnhealthyDisrupted.inc({
    condition: snakeCase(conditionType),
    nodepool: metadata.labels?.[labels.nodePool] ?? '',
    capacity_type: metadata.labels?.[labels.capacityType] ?? '',
    image_id: claim.status?.imageID ?? '',
  })
}

/** Sets the deadline of the drain to now, unless it has passed. */
async function endGracePeriod(
  { clock, kubernetes, logger }: DeletionParts,
  { metadata }: NodeClaim,
): Promise<void> {
  const key = annotations.terminationTimestamp
  const now = clock.now()
  if (Date.parse(metadata.annotations?.[key] ?? '') <= now) return
  const deadline = rfc3339(now)
  await kubernetes.client.patch(
    karpenterKinds.nodeClaim,
    { name: metadata.name },
    { metadata: { annotations: { [key]: deadline } } },
  )
  logger.info('annotated nodeclaim', { NodeClaim: { name: metadata.name }, [key]: deadline })
}

/** A condition that asks for a repair, and from when on. */
interface Ailment {
  readonly conditionType: string
  /** When the policy no longer tolerates the condition, in Unix milliseconds. */
  readonly repairAtMs: number
}

/** The condition for which the node is repaired first, by the repair policies of the provider. */
export function ailmentOf(node: Node, policies: readonly RepairPolicy[]): Ailment | undefined {
  const ailments = (node.status?.conditions ?? []).flatMap(({ type, status, lastTransitionTime }) =>
    policies
      .filter((policy) => policy.conditionType === type && policy.conditionStatus === status)
      .map(
        ({ tolerationMs }): Ailment => ({
          conditionType: type,
          repairAtMs: (lastTransitionTime === undefined ? 0 : Date.parse(lastTransitionTime)) + tolerationMs,
        }),
      ),
  )
  return ailments.toSorted((a, b) => a.repairAtMs - b.repairAtMs)[0]
}

/** Heartbeats do not count. */
export function isHealthChange(change: Change<Node>): boolean {
  if (change.kind === 'deleted') return false
  if (change.kind === 'added') return true
  const before = change.old.status?.conditions ?? []
  const after = change.object.status?.conditions ?? []
  if (before.length !== after.length) return true
  return after.some((condition) => {
    const old = before.find(({ type }) => type === condition.type)
    return old?.status !== condition.status || old.lastTransitionTime !== condition.lastTransitionTime
  })
}

/** `MemoryPressure` as a label value of metrics: `memory_pressure`. */
export function snakeCase(conditionType: string): string {
  const words = conditionType.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g) ?? []
  return words.join('_').toLowerCase()
}
