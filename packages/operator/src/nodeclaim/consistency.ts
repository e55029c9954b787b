import {
  ConditionSet,
  conditionOf,
  isConditionTrue,
  karpenterKinds,
  type NewCondition,
  type Node,
  type NodeClaim,
  ownValue,
  parseResource,
} from '@tenon/api'
import { done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, type Logger, perObject } from '@tenon/runtime'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { patchStatus } from '../patch-status.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { nodeClaimConditions } from '../state/conditions.ts'
import { claimNamesOf, isLifecycleChange, isMoreThanHeartbeat } from '../state/nodes/node-changes.ts'
import { twinText } from '../state/nodes/state-node.ts'
import { isUnreadable } from '../state/readable.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Caches
  readonly state: ClusterState
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

const conditionType = 'ConsistentStateFound'
/** How the message of `twinText` begins. */
const twinMark = 'Several Nodes carry provider ID'
const periodMs = 10 * 60_000
/** Kubelets report a little less than catalogues promise; below this share something is wrong. */
const leastShare = 0.9

/** `nodeclaim.consistency`: checks that a node is the instance that its claim promised (lifecycle.md 7). */
export class NodeClaimConsistency implements ControllerSpec {
  readonly name = 'nodeclaim.consistency'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  /** Time of the last check by claim UID, oldest first. */
  readonly #checkedMs = new Map<string, number>()

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
    const providerID = claim.status?.providerID ?? ''
    if (providerID === '') return done
    const uid = claim.metadata.uid ?? ''
    const leftMs = (this.#checkedMs.get(uid) ?? Number.NEGATIVE_INFINITY) + periodMs - clock.now()
    const node = state.nodeOf(claim)
    const nodes = caches.nodes.byIndex(indexes.byProviderId, providerID)
    const twins = nodes.length > 1 ? [twinText(nodes, node)] : []
    // A second Node is reported at once, and so is its end.
    const isReported =
      twins.every((issue) => hasReported(claim, issue)) && (twins.length > 0 || !hasReported(claim, twinMark))
    if (leftMs > 0 && isReported) return { kind: 'after', delayMs: leftMs }
    this.#sweep()
    this.#checkedMs.delete(uid)
    this.#checkedMs.set(uid, clock.now())
    if (node === undefined || isUnreadable(node)) return done
    const issues = [...twins, ...shortages(claim)(node)]
    for (const issue of issues) this.#report(claim, node, issue)
    return await this.#store(claim, issues)
  }

  #report(claim: NodeClaim, node: Node, issue: string): void {
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
    const next: ReconcileResult = { kind: 'after', delayMs: periodMs }
    if (issues.length === 0 && isConditionTrue(claim, conditionType)) return next
    const condition: NewCondition =
      issues.length === 0
        ? { type: conditionType, status: 'True' }
        : {
            type: conditionType,
            status: 'False',
            reason: 'ConsistencyCheckFailed',
            message: issues.join('; '),
          }
    const before = ConditionSet.of(claim, nodeClaimConditions)
    const after = before.set(condition, clock.now())
    if (after === before) return next
    const { conditions } = after
    let outcome: 'written' | 'conflict' | 'gone' | undefined
    try {
      outcome = await patchStatus(client, karpenterKinds.nodeClaim, claim, { conditions })
    } finally {
      // Otherwise the condition would have to wait for the next check.
      if (outcome !== 'written') this.#checkedMs.delete(claim.metadata.uid ?? '')
    }
    return outcome === 'conflict' ? { kind: 'backoff' } : next
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, atMs] of this.#checkedMs) {
      if (atMs + periodMs > now) return
      this.#checkedMs.delete(uid)
    }
  }
}

function hasReported(claim: NodeClaim, issue: string): boolean {
  return conditionOf(claim, conditionType)?.message.includes(issue) === true
}

/** Requested resources of which an initialized node has clearly less than its claim's status promises. */
const shortages = perObject((claim: NodeClaim) =>
  perObject((node: Node): readonly string[] => {
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
  }),
)
