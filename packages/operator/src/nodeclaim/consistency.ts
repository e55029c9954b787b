/** `nodeclaim.consistency`: whether a node is the instance its claim promised (lifecycle.md 7). */
import { type Clock, type Logger, perObject } from '@tenon/runtime'
import {
  ConditionSet,
  conditionOf,
  isConditionTrue,
  karpenterKinds,
  type NewCondition,
  type Node,
  type NodeClaim,
  parseResource,
  ownValue,
} from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { isUnreadable } from '../state/readable.ts'
import { nodeClaimConditions } from '../state/conditions.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { isLifecycleChange } from '../state/nodes/node-changes.ts'
import { claimNamesOf, isMoreThanHeartbeat } from '../state/nodes/node-changes.ts'
import { type Caches, indexes } from '../state/caches.ts'
import { twinText } from '../state/nodes/state-node.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes'>
  readonly state: Pick<ClusterState, 'isManaged' | 'nodeOf'>
  readonly events: EventRecorder
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

/** What is told of twins begins with it. */
const twinMark = 'Several Nodes carry provider ID'
const periodMs = 10 * 60_000
/** A node that offers less of a resource than this share of what was promised is not as promised. */
const leastShare = 0.9

/** Reconciles the consistency of one NodeClaim. */
export class NodeClaimConsistency implements ControllerSpec {
  readonly name = 'nodeclaim.consistency'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  /** When claims were looked at last, by UID; the longest ago first. */
  readonly #scannedMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches } = this.#deps
    enqueueChanged(caches.nodeClaims, enqueue, isLifecycleChange)
    caches.nodes.onChange((change) => {
      if (!isMoreThanHeartbeat(change)) return
      for (const name of claimNamesOf(caches, change.object)) enqueue(name)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, clock, state } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || !state.isManaged(claim)) return done
    if ((claim.status?.providerID ?? '') === '') return done
    const uid = claim.metadata.uid ?? ''
    const leftMs = (this.#scannedMs.get(uid) ?? Number.NEGATIVE_INFINITY) + periodMs - clock.now()
    const node = state.nodeOf(claim)
    const twins = this.#twinIssues(claim, node)
    if (
      leftMs > 0 &&
      twins.every((issue) => isTold(claim, issue)) &&
      (twins.length > 0 || !isTold(claim, twinMark))
    )
      return { kind: 'after', delayMs: leftMs }
    this.#sweep()
    this.#scannedMs.delete(uid)
    this.#scannedMs.set(uid, clock.now())
    if (node === undefined || isUnreadable(node)) return done
    const issues = [...twins, ...shapeIssues(claim)(node)]
    for (const issue of issues) this.#tell(claim, node, issue)
    return await this.#store(claim, issues)
  }

  /** Nodes beside the claim's own are told of at once. */
  #twinIssues(claim: NodeClaim, own: Node | undefined): readonly string[] {
    const nodes = this.#deps.caches.nodes.byIndex(indexes.byProviderId, claim.status?.providerID ?? '')
    return nodes.length > 1 ? [twinText(nodes, own)] : []
  }

  #tell(claim: NodeClaim, node: Node, issue: string): void {
    const { events, logger } = this.#deps
    logger.warn('consistency error', {
      NodeClaim: { name: claim.metadata.name },
      Node: { name: node.metadata.name },
      error: issue,
    })
    events.record({
      object: claim,
      type: 'Warning',
      reason: 'FailedConsistencyCheck',
      message: issue,
      dedupe: [claim.metadata.uid ?? '', issue],
    })
  }

  async #store(claim: NodeClaim, issues: readonly string[]): Promise<ReconcileResult> {
    const { client, clock } = this.#deps
    const type = 'ConsistentStateFound'
    const next: ReconcileResult = { kind: 'after', delayMs: periodMs }
    if (issues.length === 0 && isConditionTrue(claim, type)) return next
    const condition: NewCondition =
      issues.length === 0
        ? { type, status: 'True' }
        : { type, status: 'False', reason: 'ConsistencyCheckFailed', message: issues.join('; ') }
    const before = ConditionSet.of(claim, nodeClaimConditions)
    const after = before.set(condition, clock.now())
    if (after === before) return next
    try {
      await client.patch(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        { status: { conditions: after.conditions } },
        { subresource: 'status', resourceVersion: claim.metadata.resourceVersion ?? '' },
      )
    } catch (error) {
      // What was found must not wait ten minutes because somebody else wrote first.
      this.#scannedMs.delete(claim.metadata.uid ?? '')
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (!isKubeError(error, 'notFound')) throw error
    }
    return next
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, atMs] of this.#scannedMs) {
      if (atMs + periodMs > now) return
      this.#scannedMs.delete(uid)
    }
  }
}

function isTold(claim: NodeClaim, issue: string): boolean {
  return conditionOf(claim, 'ConsistentStateFound')?.message.includes(issue) === true
}

/** Resources of which an initialized node has clearly less than its claim was told. */
const shapeIssues = perObject((claim: NodeClaim) =>
  perObject((node: Node): readonly string[] => issuesOf(node, claim)),
)

function issuesOf(node: Node, claim: NodeClaim): readonly string[] {
  if (claim.metadata.deletionTimestamp !== undefined || !isConditionTrue(claim, 'Initialized')) return []
  return Object.entries(claim.spec.resources?.requests ?? {}).flatMap(([name, requested]) => {
    const promised = ownValue(claim.status?.capacity, name) ?? '0'
    const found = ownValue(node.status?.capacity, name) ?? '0'
    const expected = parseResource(name, promised)
    if (parseResource(name, requested) === 0 || expected === 0) return []
    const share = parseResource(name, found) / expected
    if (share >= leastShare) return []
    return [
      `expected ${promised} of resource ${name}, but found ${found} (${(100 * share).toFixed(1)}% of expected)`,
    ]
  })
}
