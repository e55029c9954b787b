/** `node.termination`: drains a deleting Node, waits for its volumes, ends its instance (lifecycle.md 4). */
import type { CloudProvider } from '@tenon/provider'
import {
  annotations,
  ConditionSet,
  disruptedTaint,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  terminationFinalizer,
} from '@tenon/api'
import { done, isKubeError, mergePatchOf, type ReconcileResult } from '@tenon/kube'
import { deadlineMsOf } from '../../state/nodes/state-node.ts'
import { isDisrupted, isNodeReady } from '../../state/nodes/state-node.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import { isInstanceGone } from '../../nodeclaim/lifecycle/finalize.ts'
import { isTerminatingNode } from './drain-state.ts'
import type { Departure } from './departure.ts'
import type { TerminationReport } from './report.ts'
import type { TerminationStage } from './stages.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Kubernetes } from '../../kubernetes.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes<'nodes'>
  readonly state: Pick<ClusterState, 'claimOf'>
  readonly provider: Pick<CloudProvider, 'get' | 'nodeClasses' | 'ownsProviderID'>
  /** In order; each is looked at again in every pass. */
  readonly stages: readonly TerminationStage[]
  readonly report: TerminationReport
}

const backoff: ReconcileResult = { kind: 'backoff' }
/** The deadline stays the same, and each event on the drain repeats it. */
const deadlineEventMs = 60 * 60_000

/** Reconciles one deleting Node. */
export class NodeTermination implements ControllerSpec {
  readonly name = 'node.termination'
  readonly concurrency = { least: 100, most: 5000 }
  readonly backoff = { baseMs: 100, capMs: 10_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    enqueueChanged(
      this.#deps.kubernetes.caches.nodes,
      enqueue,
      ({ object }) => object.metadata.deletionTimestamp !== undefined,
    )
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const node = this.#deps.kubernetes.caches.nodes.get({ name })
    if (node === undefined || !isTerminatingNode(node, this.#deps.provider.nodeClasses)) return done
    try {
      return await this.#terminate(node, signal)
    } catch (error) {
      if (isKubeError(error, 'conflict')) return backoff
      if (isKubeError(error, 'notFound')) return done
      throw error
    }
  }

  async #terminate(node: Node, signal: AbortSignal): Promise<ReconcileResult> {
    const claim = this.#deps.state.claimOf(node)
    if (claim !== undefined && claim.metadata.deletionTimestamp === undefined) await this.#deleteClaim(claim)
    if (!isNodeReady(node) && (await this.#isInstanceGone(node, signal))) return await this.#finish(node)
    const deadlineMs = this.#deadlineOf(node, claim)
    const tainted = await this.#taint(node)
    const requeueMs = await this.#advance({ node, claim, deadlineMs }, signal)
    return requeueMs === undefined ? await this.#finish(tainted) : { kind: 'after', delayMs: requeueMs }
  }

  async #deleteClaim(claim: NodeClaim): Promise<void> {
    await this.#deps.kubernetes.client
      .delete(karpenterKinds.nodeClaim, { name: claim.metadata.name })
      .catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
  }

  /** A provider ID that denotes no instance says nothing about the instance: it is drained like any other. */
  async #isInstanceGone(node: Node, signal: AbortSignal): Promise<boolean> {
    const providerID = node.spec?.providerID ?? ''
    if (!this.#deps.provider.ownsProviderID(providerID)) return false
    return await isInstanceGone(this.#deps.provider, providerID, signal)
  }

  #deadlineOf(node: Node, claim: NodeClaim | undefined): number {
    const text = claim?.metadata.annotations?.[annotations.terminationTimestamp]
    if (text === undefined) return Number.POSITIVE_INFINITY
    const deadlineMs = deadlineMsOf(claim)
    if (Number.isNaN(deadlineMs)) {
      throw new Error(
        `NodeClaim ${claim?.metadata.name}: annotation ${annotations.terminationTimestamp} "${text}" is not an RFC 3339 time; correct or remove it`,
      )
    }
    this.#deps.kubernetes.events.record({
      object: node,
      type: 'Warning',
      reason: 'TerminationGracePeriodExpiring',
      message: `All pods will be deleted by ${text}`,
      dedupe: [node.metadata.name],
      dedupeTtlMs: deadlineEventMs,
    })
    return deadlineMs
  }

  /** @returns the Node as it is stored then. */
  async #taint(node: Node): Promise<Node> {
    const taints = node.spec?.taints ?? []
    const wanted: Node = {
      ...node,
      metadata: {
        ...node.metadata,
        labels: { ...node.metadata.labels, [labels.excludeFromLoadBalancers]: 'karpenter' },
      },
      spec: {
        ...node.spec,
        taints: isDisrupted(node)
          ? taints
          : [...taints.filter((taint) => taint.key !== disruptedTaint.key), disruptedTaint],
      },
    }
    const patch = mergePatchOf(node, wanted)
    if (patch === undefined) return node
    const tainted = await this.#deps.kubernetes.client.patch(
      kinds.node,
      { name: node.metadata.name },
      patch,
      {
        resourceVersion: node.metadata.resourceVersion ?? '',
      },
    )
    this.#deps.report.tainted(node)
    return tainted
  }

  /** @returns when to look again, or undefined once every stage is through. */
  async #advance(departure: Departure, signal: AbortSignal): Promise<number | undefined> {
    const { claim } = departure
    const before = claim === undefined ? undefined : ConditionSet.of(claim, nodeClaimConditions)
    let conditions = before
    let requeueMs: number | undefined
    try {
      for (const stage of this.#deps.stages) {
        const outcome = await stage(departure, conditions, signal)
        conditions = outcome.conditions
        requeueMs = outcome.requeueMs
        if (requeueMs !== undefined) break
      }
    } finally {
      // What the earlier stages found is kept even when a later one fails.
      if (claim !== undefined && conditions !== before) await this.#store(claim, before, conditions)
    }
    return requeueMs
  }

  async #store(
    claim: NodeClaim,
    before: ConditionSet | undefined,
    after: ConditionSet | undefined,
  ): Promise<void> {
    const { kubernetes, report } = this.#deps
    try {
      await kubernetes.client.patch(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        { status: { conditions: after?.conditions } },
        { subresource: 'status', resourceVersion: claim.metadata.resourceVersion ?? '' },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
      return
    }
    if (after?.isTrue('Drained') === true && before?.isTrue('Drained') !== true) report.drained(claim)
  }

  async #finish(node: Node): Promise<ReconcileResult> {
    const finalizers = (node.metadata.finalizers ?? []).filter((name) => name !== terminationFinalizer)
    await this.#deps.kubernetes.client.patch(
      kinds.node,
      { name: node.metadata.name },
      { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } },
      { resourceVersion: node.metadata.resourceVersion ?? '' },
    )
    this.#deps.report.finished(node)
    return done
  }
}
