/** `node.termination`: drains a deleting Node, waits for its volumes, ends its machine (lifecycle.md 4). */
import {
  annotations,
  ConditionSet,
  disruptedTaint,
  karpenterKinds,
  kinds,
  labels,
  type NewCondition,
  type Node,
  type NodeClaim,
  nodeClassLabel,
  sameTaint,
  terminationFinalizer,
} from '@tenon/api'
import { done, isKubeError, mergePatchOf, type ReconcileResult } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import type { OperatorContext } from '../../context.ts'
import { isNodeReady, transitionMs } from '../../state/cluster-state.ts'
import { nodeClaimConditions } from '../nodeclaim-lifecycle/conditions.ts'
import { deletesInstance, markTerminating } from '../nodeclaim-lifecycle/finalize.ts'
import { isDrainable, planDrain } from './drain.ts'
import type { EvictionQueue } from './eviction-queue.ts'
import { pendingVolumes } from './volumes.ts'

const backoff: ReconcileResult = { kind: 'backoff' }
const pollMs = 1000
const instancePollMs = 5000
/** Pods may have been bound before the scheduler saw the taint. */
const leastDrainMs = 5000

/** A stage that is not through yet. */
interface Waiting {
  readonly requeueMs: number
}

/** Reconciles one deleting Node. */
export class NodeTermination {
  readonly #context: OperatorContext
  readonly #evictions: EvictionQueue

  constructor(context: OperatorContext, evictions: EvictionQueue) {
    this.#context = context
    this.#evictions = evictions
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const node = this.#context.caches.nodes.get({ name })
    if (node?.metadata.deletionTimestamp === undefined || !this.#isManaged(node)) return done
    if (!(node.metadata.finalizers ?? []).includes(terminationFinalizer)) return done
    try {
      return await this.#terminate(node, signal)
    } catch (error) {
      if (isKubeError(error, 'conflict')) return backoff
      if (isKubeError(error, 'notFound')) return done
      throw error
    }
  }

  #isManaged(node: Node): boolean {
    return this.#context.provider.nodeClasses.some(
      (type) => node.metadata.labels?.[nodeClassLabel(type)] !== undefined,
    )
  }

  async #terminate(node: Node, signal: AbortSignal): Promise<ReconcileResult> {
    const claim = this.#context.state.claimOf(node)
    if (claim !== undefined && claim.metadata.deletionTimestamp === undefined) await this.#deleteClaim(claim)
    if (!isNodeReady(node) && (await this.#isInstanceGone(node, signal))) return await this.#finish(node)
    const deadlineMs = this.#deadlineOf(node, claim)
    const tainted = await this.#taint(node)
    const waiting =
      (await this.#drain(node, claim, deadlineMs)) ??
      (await this.#detachVolumes(node, claim, deadlineMs)) ??
      (await this.#endInstance(claim, signal))
    if (waiting !== undefined) return { kind: 'after', delayMs: waiting.requeueMs }
    return await this.#finish(tainted)
  }

  async #deleteClaim(claim: NodeClaim): Promise<void> {
    await this.#context.client
      .delete(karpenterKinds.nodeClaim, { name: claim.metadata.name })
      .catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
  }

  async #isInstanceGone(node: Node, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#context.provider.get(node.spec?.providerID ?? '', signal)
      return false
    } catch (error) {
      if (isProviderError(error, 'nodeClaimNotFound')) return true
      throw error
    }
  }

  #deadlineOf(node: Node, claim: NodeClaim | undefined): number {
    const text = claim?.metadata.annotations?.[annotations.terminationTimestamp]
    if (text === undefined) return Number.POSITIVE_INFINITY
    const deadlineMs = Date.parse(text)
    if (Number.isNaN(deadlineMs)) {
      throw new Error(
        `NodeClaim ${claim?.metadata.name}: annotation ${annotations.terminationTimestamp} "${text}" is no RFC 3339 time; correct or remove it`,
      )
    }
    this.#context.events.record({
      object: node,
      type: 'Warning',
      reason: 'TerminationGracePeriodExpiring',
      message: `All pods will be deleted by ${text}`,
      dedupe: [node.metadata.name],
    })
    return deadlineMs
  }

  /** @returns the Node as it is stored then. */
  async #taint(node: Node): Promise<Node> {
    const taints = node.spec?.taints ?? []
    const isTainted = taints.some((taint) => sameTaint(taint, disruptedTaint))
    const wanted: Node = {
      ...node,
      metadata: {
        ...node.metadata,
        labels: { ...node.metadata.labels, [labels.excludeFromLoadBalancers]: 'karpenter' },
      },
      spec: {
        ...node.spec,
        taints: isTainted
          ? taints
          : [...taints.filter((taint) => taint.key !== disruptedTaint.key), disruptedTaint],
      },
    }
    const patch = mergePatchOf(node, wanted)
    if (patch === undefined) return node
    const tainted = await this.#context.client.patch(kinds.node, { name: node.metadata.name }, patch, {
      resourceVersion: node.metadata.resourceVersion ?? '',
    })
    this.#context.logger.info('tainted node', { Node: { name: node.metadata.name } })
    return tainted
  }

  async #drain(node: Node, claim: NodeClaim | undefined, deadlineMs: number): Promise<Waiting | undefined> {
    const { clock, state, events, metrics } = this.#context
    const plan = planDrain(state.podsOn(node.metadata.name), deadlineMs, clock.now())
    const draining = await this.#begin(claim, {
      type: 'Drained',
      status: 'Unknown',
      reason: 'Draining',
      message: 'Draining',
    })
    if (plan.waiting.length > 0) {
      this.#evictions.add(plan.evictNow, deadlineMs)
      events.record({
        object: node,
        type: 'Warning',
        reason: 'FailedDraining',
        message: `Waiting for ${plan.waiting.length} pod(s) to leave the node`,
        dedupe: [node.metadata.name],
      })
      return { requeueMs: pollMs }
    }
    if (draining === undefined) return undefined
    const isDrained = ConditionSet.of(draining, nodeClaimConditions).isTrue('Drained')
    const since = transitionMs(draining, 'Drained') ?? clock.now()
    if (!isDrained && clock.now() - since < leastDrainMs) return { requeueMs: pollMs }
    if (!isDrained) {
      await this.#setCondition(draining, { type: 'Drained', status: 'True' })
      metrics.nodesDrained.inc({ nodepool: claim?.metadata.labels?.[labels.nodePool] ?? '' })
    }
    return undefined
  }

  async #detachVolumes(
    node: Node,
    claim: NodeClaim | undefined,
    deadlineMs: number,
  ): Promise<Waiting | undefined> {
    const { caches, clock, state, events } = this.#context
    const now = clock.now()
    const staying = state.podsOn(node.metadata.name).filter((pod) => !isDrainable(pod, now))
    const pending = pendingVolumes(caches, node.metadata.name, staying)
    const current =
      claim === undefined ? undefined : (caches.nodeClaims.get({ name: claim.metadata.name }) ?? claim)
    if (pending.length === 0) {
      if (current !== undefined)
        await this.#setCondition(current, { type: 'VolumesDetached', status: 'True' })
      return undefined
    }
    if (now > deadlineMs) {
      const reason = 'TerminationGracePeriodElapsed'
      if (current !== undefined) {
        await this.#setCondition(current, {
          type: 'VolumesDetached',
          status: 'False',
          reason,
          message: reason,
        })
      }
      return undefined
    }
    const rest = pending.length - 5
    events.record({
      object: node,
      type: 'Normal',
      reason: 'AwaitingVolumeDetachment',
      message: `Waiting for volumes to detach: ${pending.slice(0, 5).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`,
      dedupe: [node.metadata.name],
    })
    const reason = 'AwaitingVolumeDetachment'
    const condition: NewCondition = { type: 'VolumesDetached', status: 'Unknown', reason, message: reason }
    if (current !== undefined) await this.#setCondition(current, condition)
    return { requeueMs: pollMs }
  }

  async #endInstance(claim: NodeClaim | undefined, signal: AbortSignal): Promise<Waiting | undefined> {
    if (claim === undefined) return undefined
    const isGone = await deletesInstance(this.#context, claim, signal)
    const current = this.#context.caches.nodeClaims.get({ name: claim.metadata.name }) ?? claim
    await markTerminating(this.#context, current)
    return isGone ? undefined : { requeueMs: instancePollMs }
  }

  /** Sets a condition unless the claim has one of its type already. */
  async #begin(claim: NodeClaim | undefined, condition: NewCondition): Promise<NodeClaim | undefined> {
    if (claim === undefined) return undefined
    const known = claim.status?.conditions?.some((each) => each.type === condition.type)
    return known === true ? claim : await this.#setCondition(claim, condition)
  }

  async #setCondition(claim: NodeClaim, condition: NewCondition): Promise<NodeClaim> {
    const before = ConditionSet.of(claim, nodeClaimConditions)
    const after = before.set(condition, this.#context.clock.now())
    if (before === after) return claim
    return await this.#context.client.patch(
      karpenterKinds.nodeClaim,
      { name: claim.metadata.name },
      { status: { conditions: after.conditions } },
      { subresource: 'status', resourceVersion: claim.metadata.resourceVersion ?? '' },
    )
  }

  async #finish(node: Node): Promise<ReconcileResult> {
    const finalizers = (node.metadata.finalizers ?? []).filter((name) => name !== terminationFinalizer)
    await this.#context.client.patch(
      kinds.node,
      { name: node.metadata.name },
      { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } },
      { resourceVersion: node.metadata.resourceVersion ?? '' },
    )
    const tags = node.metadata.labels ?? {}
    this.#context.metrics.nodesTerminated.inc({
      nodepool: tags[labels.nodePool] ?? '',
      zone: tags[labels.zone] ?? '',
    })
    this.#context.logger.info('deleted node', {
      Node: { name: node.metadata.name },
      'provider-id': node.spec?.providerID,
    })
    return done
  }
}
