/** `disruption`, method Emptiness: removes nodes that hold no pod (disruption.md 2, 8, 13, 14). */
import {
  annotations,
  ConditionSet,
  type DisruptionReason,
  disruptedTaint,
  isConditionTrue,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodePool,
  parseNillableDuration,
  sameTaint,
} from '@tenon/api'
import { allowedDisruptions } from '@tenon/engine'
import { isKubeError, mergePatchOf, type ReconcileResult } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'
import { isNodeReady, type StateNode } from '../../state/cluster-state.ts'
import { isReschedulable } from '../../state/pods.ts'
import { nodeClaimConditions } from '../nodeclaim-lifecycle/conditions.ts'
import { deleteClaim } from '../nodeclaim-lifecycle/delete-claim.ts'

const reason: DisruptionReason = 'Empty'
const defaultBudgets = [{ nodes: '10%' }]
const unsyncedMs = 1000

/** A node that may go, with everything known to be there. */
type Candidate = StateNode &
  Required<{ readonly node: Node }> & { readonly claim: NonNullable<StateNode['claim']> }

export class Emptiness {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { state, settings, clock } = this.#context
    if (state.unlaunched().length > 0) return { kind: 'after', delayMs: unsyncedMs }
    await this.#cleanUp()
    if (this.#withinBudget(this.#candidates()).length === 0)
      return { kind: 'after', delayMs: settings.disruptionPollMs }
    await clock.sleep(settings.validationDelayMs, signal)
    if (state.unlaunched().length > 0) return { kind: 'after', delayMs: unsyncedMs }
    const accepted = this.#withinBudget(this.#candidates())
    for (const candidate of accepted) await this.#disrupt(candidate)
    return { kind: 'after', delayMs: accepted.length > 0 ? 0 : settings.disruptionPollMs }
  }

  /** Takes marks of commands that did not finish off again (disruption.md 2, step 3). */
  async #cleanUp(): Promise<void> {
    for (const { node, claim, isMarkedForDeletion, isInitialized } of this.#context.state.stateNodes()) {
      if (isMarkedForDeletion || node === undefined || claim === undefined) continue
      if (node.metadata.deletionTimestamp !== undefined) continue
      await this.#taint(node, false)
      if (isInitialized && isConditionTrue(claim, 'DisruptionReason')) await this.#clearReason(claim)
    }
  }

  #candidates(): readonly Candidate[] {
    return this.#context.state
      .stateNodes()
      .filter((node): node is Candidate => node.node !== undefined && node.claim !== undefined)
      .filter((node) => this.#mayGo(node))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  #mayGo(candidate: Candidate): boolean {
    const { state } = this.#context
    const { node, claim, providerID } = candidate
    const pool = this.#poolOf(candidate)
    if (pool === undefined || pool.spec.replicas !== undefined) return false
    if (!Number.isFinite(parseNillableDuration(pool.spec.disruption?.consolidateAfter ?? '0s') ?? 0))
      return false
    return (
      candidate.isInitialized &&
      !candidate.isMarkedForDeletion &&
      node.metadata.deletionTimestamp === undefined &&
      !state.isNominated(providerID) &&
      node.metadata.annotations?.[annotations.doNotDisrupt] !== 'true' &&
      isConditionTrue(claim, 'Consolidatable') &&
      !state.podsOn(node.metadata.name).some(isReschedulable)
    )
  }

  #poolOf(candidate: StateNode): NodePool | undefined {
    return this.#context.caches.nodePools.get({
      name: candidate.node?.metadata.labels?.[labels.nodePool] ?? '',
    })
  }

  /** Takes candidates while their pool's budget lasts. */
  #withinBudget(candidates: readonly Candidate[]): readonly Candidate[] {
    const remaining = new Map<string, number>()
    return candidates.filter((candidate) => {
      const pool = this.#poolOf(candidate)
      if (pool === undefined) return false
      const left = remaining.get(pool.metadata.name) ?? this.#remaining(pool)
      remaining.set(pool.metadata.name, left - 1)
      return left > 0
    })
  }

  #remaining(pool: NodePool): number {
    const nodes = this.#context.state
      .stateNodes()
      .filter(
        ({ node, claim }) =>
          node?.metadata.labels?.[labels.nodePool] === pool.metadata.name && claim !== undefined,
      )
      .filter(
        ({ isInitialized, claim }) =>
          isInitialized && claim !== undefined && !isConditionTrue(claim, 'InstanceTerminating'),
      )
    const disrupting = nodes.filter(
      ({ node, isMarkedForDeletion }) => isMarkedForDeletion || (node && !isNodeReady(node)),
    )
    const budgets = pool.spec.disruption?.budgets ?? defaultBudgets
    const allowed = allowedDisruptions(budgets, reason, nodes.length, this.#context.clock.now())
    return Math.max(0, allowed - disrupting.length)
  }

  async #disrupt({ node, claim, providerID }: Candidate): Promise<void> {
    const { state, logger, events } = this.#context
    logger.info('disrupting node(s)', {
      reason: reason.toLowerCase(),
      decision: 'delete',
      Node: { name: node.metadata.name },
    })
    await this.#taint(node, true)
    await this.#setReason(claim)
    // A pod may have been bound while the taint was on its way.
    if (state.podsOn(node.metadata.name).some(isReschedulable)) return
    state.mark(providerID)
    if (!(await deleteClaim(this.#context, claim, reason.toLowerCase()))) return
    for (const object of [node, claim]) {
      events.record({
        object,
        type: 'Normal',
        reason: 'DisruptionTerminating',
        message: `Disrupting ${object.kind}: ${reason}`,
        dedupe: [object.metadata.name, reason],
      })
    }
  }

  async #taint(node: Node, isWanted: boolean): Promise<void> {
    const taints = node.spec?.taints ?? []
    const others = taints.filter((taint) => !sameTaint(taint, disruptedTaint))
    if (isWanted === others.length < taints.length) return
    const patch = mergePatchOf(node, {
      ...node,
      spec: { ...node.spec, taints: isWanted ? [...taints, disruptedTaint] : others },
    })
    try {
      await this.#context.client.patch(kinds.node, { name: node.metadata.name }, patch ?? {}, {
        resourceVersion: node.metadata.resourceVersion ?? '',
      })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }

  async #setReason(claim: Candidate['claim']): Promise<void> {
    const conditions = ConditionSet.of(claim, nodeClaimConditions).set(
      { type: 'DisruptionReason', status: 'True', reason, message: reason },
      this.#context.clock.now(),
    )
    await this.#writeConditions(claim, conditions)
  }

  async #clearReason(claim: Candidate['claim']): Promise<void> {
    await this.#writeConditions(claim, ConditionSet.of(claim, nodeClaimConditions).clear('DisruptionReason'))
  }

  async #writeConditions(claim: Candidate['claim'], conditions: ConditionSet): Promise<void> {
    try {
      await this.#context.client.patch(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        { status: { conditions: conditions.conditions } },
        { subresource: 'status', resourceVersion: claim.metadata.resourceVersion ?? '' },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}
