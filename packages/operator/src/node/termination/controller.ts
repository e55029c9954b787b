import {
  annotations,
  ConditionSet,
  disruptedTaint,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type Pod,
  terminationFinalizer,
} from '@tenon/api'
import { done, isKubeError, mergePatchOf, type ReconcileResult } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { deletesInstance, isInstanceGone } from '../../nodeclaim/lifecycle/finalize.ts'
import { indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import { deadlineMsOf, isDisrupted, isNodeReady } from '../../state/nodes/state-node.ts'
import { podsOnNode } from '../../state/pods/pods.ts'
import { type DrainPlan, isDrainable, isTerminatingNode, pendingVolumes, planDrain } from './drain.ts'
import { BudgetIndex, drainReport, drainSummary, isHeld, surgeOf } from './drain-report.ts'
import type { EvictionQueue } from './eviction-queue.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly evictions: EvictionQueue
  /** Undefined unless rollouts replace pods before they are evicted. */
  readonly hold?: EvictionHold
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
}

/** Keeps pods from being evicted while something better is done about them. The deadline of the node overrides it. */
export interface EvictionHold {
  /** @returns those of the pods that are to be evicted now. */
  evictable(node: Node, pods: readonly Pod[], signal: AbortSignal): Promise<readonly Pod[]>
}

/** A Node that is being deleted. */
interface LeavingNode {
  readonly node: Node
  /** Undefined if no claim has the Node, or several have it. */
  readonly claim: NodeClaim | undefined
  /** Infinity if nothing limits the drain. */
  readonly deadlineMs: number
}

interface DrainLook {
  readonly plan: DrainPlan
  /** Whether pods of another Node of the instance still have to leave. */
  readonly isTwinDraining: boolean
}

interface StageOutcome {
  /** Of the claim, to be stored; undefined if there is no claim. */
  readonly conditions: ConditionSet | undefined
  /** Set if the stage is not complete. */
  readonly requeueMs?: number
}

const backoff: ReconcileResult = { kind: 'backoff' }
const pollMs = 1000
const instancePollMs = 5000
/** Pods may have been bound before the scheduler saw the taint. */
const leastDrainMs = 5000
/** After this time without a report of its kubelet a Node is not ready any more: Kubernetes' default. */
const monitorGraceMs = 50_000
/** One event per Node in this time. */
const drainEventMs = 5 * 60_000
/** No event before this time, unless something holds the drain: it may be over by then. */
const firstDrainEventMs = 5000
/** The deadline does not change, and each event about the drain repeats it. */
const deadlineEventMs = 60 * 60_000

/** `node.termination`: drains a Node that is being deleted, waits for its volumes, and deletes its instance (lifecycle.md 4). */
export class NodeTermination implements ControllerSpec {
  readonly name = 'node.termination'
  readonly concurrency = { least: 100, most: 5000 }
  readonly backoff = { baseMs: 100, capMs: 10_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies
  /** When the drain of a Node may be reported next, by Node UID. */
  readonly #nextReportMs = new Map<string, number>()

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
    const { kubernetes, provider } = this.#deps
    const node = kubernetes.caches.nodes.get({ name })
    if (node === undefined || !isTerminatingNode(node, provider.nodeClasses)) return done
    if (this.#deps.state.isForeign(node)) return done
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
    if (!isNodeReady(node) && (await this.#isInstanceGone(node, signal)))
      return await this.#removeFinalizer(node)
    const deadlineMs = this.#deadlineOf(node, claim)
    const tainted = await this.#taint(node)
    const requeueMs = await this.#advance({ node, claim, deadlineMs }, signal)
    return requeueMs === undefined
      ? await this.#removeFinalizer(tainted)
      : { kind: 'after', delayMs: requeueMs }
  }

  async #deleteClaim(claim: NodeClaim): Promise<void> {
    await this.#deps.kubernetes.client
      .delete(karpenterKinds.nodeClaim, { name: claim.metadata.name })
      .catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
  }

  /** Always false for IDs that are none of the provider's: such Nodes are drained like others. */
  async #isInstanceGone(node: Node, signal: AbortSignal): Promise<boolean> {
    const { provider } = this.#deps
    const providerID = node.spec?.providerID ?? ''
    return provider.ownsProviderID(providerID) && (await isInstanceGone(provider, providerID, signal))
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

  /** @returns the Node as stored. */
  async #taint(node: Node): Promise<Node> {
    const { kubernetes, logger } = this.#deps
    const { name, resourceVersion = '' } = node.metadata
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
    const tainted = await kubernetes.client.patch(kinds.node, { name }, patch, { resourceVersion })
    logger.info('tainted node', { Node: { name } })
    return tainted
  }

  /** Each stage is checked again in every pass. @returns when to check next; undefined once all are complete. */
  async #advance(leaving: LeavingNode, signal: AbortSignal): Promise<number | undefined> {
    const { claim } = leaving
    const before = claim === undefined ? undefined : ConditionSet.of(claim, nodeClaimConditions)
    const stages: readonly ((conditions?: ConditionSet) => Promise<StageOutcome> | StageOutcome)[] = [
      (conditions) => this.#drain(leaving, conditions, signal),
      (conditions) => this.#detachVolumes(leaving, conditions),
      (conditions) => this.#deleteInstance(leaving, conditions, signal),
    ]
    let outcome: StageOutcome = { conditions: before }
    try {
      for (const stage of stages) {
        outcome = await stage(outcome.conditions)
        if (outcome.requeueMs !== undefined) break
      }
    } finally {
      // Conditions of earlier stages are stored even if a later one fails.
      if (claim !== undefined && outcome.conditions !== before)
        await this.#store(claim, before, outcome.conditions)
    }
    return outcome.requeueMs
  }

  async #drain(
    leaving: LeavingNode,
    before: ConditionSet | undefined,
    signal: AbortSignal,
  ): Promise<StageOutcome> {
    const { clock, evictions, hold, state } = this.#deps
    const now = clock.now()
    const { deadlineMs, node } = leaving
    const sinceMs = Date.parse(before?.get('Drained')?.lastTransitionTime ?? '')
    const isSettled = before === undefined || now - sinceMs >= leastDrainMs
    let { plan, isTwinDraining } = await this.#look(leaving, (name) => state.podsOn(name))
    const isOver = plan.waiting.length === 0 && !isTwinDraining && isSettled
    // The instance is deleted next, with pods that the cache may not show: the API server is asked.
    if (isOver && before?.isTrue('Drained') !== true)
      ({ plan, isTwinDraining } = await this.#freshLook(leaving, signal))
    const draining = { type: 'Drained', status: 'Unknown', reason: 'Draining', message: 'Draining' } as const
    const conditions = before?.get('Drained') === undefined ? before?.set(draining, now) : before
    if (plan.waiting.length > 0) {
      evictions.addForced(plan.force, deadlineMs)
      evictions.add((await hold?.evictable(node, plan.evict, signal)) ?? plan.evict, deadlineMs)
      this.#reportDrain(leaving, plan)
      // A pod has only its grace period left when its eviction is forced, so this must not be late.
      const forceMs = Math.max(1, plan.nextForceMs - now + 1)
      return { conditions, requeueMs: Math.min(pollMs, forceMs) }
    }
    if (isTwinDraining) return { conditions, requeueMs: pollMs }
    if (conditions === undefined || conditions.isTrue('Drained')) return { conditions }
    if (!isSettled) return { conditions, requeueMs: pollMs }
    return { conditions: conditions.set({ type: 'Drained', status: 'True' }, now) }
  }

  async #look(
    leaving: LeavingNode,
    podsOn: (nodeName: string) => readonly Pod[] | Promise<readonly Pod[]>,
  ): Promise<DrainLook> {
    const now = this.#deps.clock.now()
    const planOf = async (name: string) => planDrain(await podsOn(name), leaving.deadlineMs, now)
    const twins = this.#twinsOf(leaving)
    const plan = await planOf(leaving.node.metadata.name)
    let isTwinDraining = false
    for (const twin of twins) isTwinDraining ||= (await planOf(twin)).waiting.length > 0
    return { plan, isTwinDraining }
  }

  /** The same by what the API server says. */
  async #freshLook(leaving: LeavingNode, signal: AbortSignal): Promise<DrainLook> {
    const { clock, kubernetes } = this.#deps
    const { node, deadlineMs } = leaving
    const look = await this.#look(leaving, (name) => podsOnNode(kubernetes.client, name, signal))
    const now = clock.now()
    const isLong = now - Date.parse(node.metadata.deletionTimestamp ?? '') > monitorGraceMs
    const isHidden = isLong && now < deadlineMs && (await this.#mayHaveUnseenTwin(node))
    return isHidden ? { ...look, isTwinDraining: true } : look
  }

  /** Names of other Nodes of the same instance, such as one under a former name: their pods end with it, too. */
  #twinsOf({ claim, node }: LeavingNode): readonly string[] {
    const { nodes } = this.#deps.kubernetes.caches
    const providerID = claim?.status?.providerID ?? ''
    const all = providerID === '' ? [] : nodes.byIndex(indexes.byProviderId, providerID)
    return all.flatMap(({ metadata: { name } }) => (name === node.metadata.name ? [] : name))
  }

  /**
   * A kubelet that reports under another name leaves this Node without reports. The Node that it created came before
   * this one was found silent, so it is unseen only if this pass did not see that either.
   */
  async #mayHaveUnseenTwin({ metadata: { name, resourceVersion } }: Node): Promise<boolean> {
    const current = await this.#deps.kubernetes.client.get(kinds.node, { name })
    return (
      current !== undefined && !isNodeReady(current) && current.metadata.resourceVersion !== resourceVersion
    )
  }

  /** Records what the drain waits for, at most every five minutes. */
  #reportDrain({ node, deadlineMs }: LeavingNode, plan: DrainPlan): void {
    const { clock, kubernetes, state } = this.#deps
    const now = clock.now()
    const uid = node.metadata.uid ?? node.metadata.name
    const nextMs = this.#nextReportMs.get(uid)
    if (nextMs !== undefined && now < nextMs) return
    for (const [each, eachMs] of this.#nextReportMs)
      if (now > eachMs + drainEventMs) this.#nextReportMs.delete(each)
    const facts = {
      node: node.metadata.name,
      since: node.metadata.deletionTimestamp ?? '',
      deadlineMs,
      pods: plan.waiting,
      budgets: new BudgetIndex(kubernetes.caches.podDisruptionBudgets.list()),
      podsOnNodes: state.podsOnNodes,
      surgeOf: surgeOf(state, node),
      windows: state.windows,
      pendingVolumes: [],
    }
    const report = drainReport(facts, now)
    if (nextMs === undefined && !report.pods.some(isHeld)) {
      this.#nextReportMs.set(uid, now + firstDrainEventMs)
      return
    }
    this.#nextReportMs.set(uid, now + drainEventMs)
    const message = drainSummary(report)
    kubernetes.events.record({ object: node, type: 'Warning', reason: 'FailedDraining', message })
  }

  #detachVolumes({ node, deadlineMs }: LeavingNode, conditions: ConditionSet | undefined): StageOutcome {
    const { clock, kubernetes, state } = this.#deps
    const now = clock.now()
    const type = 'VolumesDetached'
    const staying = state.podsOn(node.metadata.name).filter((pod) => !isDrainable(pod, now))
    const pending = pendingVolumes(kubernetes.caches, node.metadata.name, staying)
    if (pending.length === 0) return { conditions: conditions?.set({ type, status: 'True' }, now) }
    if (now > deadlineMs) {
      const reason = 'TerminationGracePeriodElapsed'
      return { conditions: conditions?.set({ type, status: 'False', reason, message: reason }, now) }
    }
    const rest = pending.length - 5
    const reason = 'AwaitingVolumeDetachment'
    kubernetes.events.record({
      object: node,
      type: 'Normal',
      reason,
      message: `Waiting for volumes to detach: ${pending.slice(0, 5).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`,
      dedupe: [node.metadata.name],
      dedupeTtlMs: drainEventMs,
    })
    return {
      conditions: conditions?.set({ type, status: 'Unknown', reason, message: reason }, now),
      requeueMs: pollMs,
    }
  }

  async #deleteInstance(
    { claim }: LeavingNode,
    conditions: ConditionSet | undefined,
    signal: AbortSignal,
  ): Promise<StageOutcome> {
    const { clock, provider } = this.#deps
    if (claim === undefined) return { conditions }
    const isGone = await deletesInstance(provider, claim, signal)
    return {
      conditions: conditions?.set({ type: 'InstanceTerminating', status: 'True' }, clock.now()),
      ...(!isGone && { requeueMs: instancePollMs }),
    }
  }

  async #store(
    claim: NodeClaim,
    before: ConditionSet | undefined,
    after: ConditionSet | undefined,
  ): Promise<void> {
    const { kubernetes, metrics } = this.#deps
    const { name, labels: tags = {}, resourceVersion = '' } = claim.metadata
    try {
      await kubernetes.client.patch(
        karpenterKinds.nodeClaim,
        { name },
        { status: { conditions: after?.conditions } },
        { subresource: 'status', resourceVersion },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
      return
    }
    if (after?.isTrue('Drained') === true && before?.isTrue('Drained') !== true)
      metrics.nodesDrained.inc({ nodepool: tags[labels.nodePool] ?? '' })
  }

  async #removeFinalizer(node: Node): Promise<ReconcileResult> {
    const { clock, kubernetes, logger, metrics } = this.#deps
    const { metadata, spec } = node
    const { name, labels: tags = {}, resourceVersion = '' } = metadata
    const finalizers = (metadata.finalizers ?? []).filter((each) => each !== terminationFinalizer)
    await kubernetes.client.patch(
      kinds.node,
      { name },
      { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } },
      { resourceVersion },
    )
    const nodepool = tags[labels.nodePool] ?? ''
    const secondsSince = (time = '') => Math.max(0, clock.now() - Date.parse(time)) / 1000
    metrics.nodesTerminated.inc({ nodepool, zone: tags[labels.zone] ?? '' })
    metrics.nodesTermination.observe({ nodepool }, secondsSince(metadata.deletionTimestamp))
    metrics.nodesLifetime.observe({ nodepool }, secondsSince(metadata.creationTimestamp))
    logger.info('deleted node', { Node: { name }, 'provider-id': spec?.providerID })
    return done
  }
}
