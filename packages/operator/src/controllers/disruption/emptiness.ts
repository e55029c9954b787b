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
import { doNotDisrupt, evictionCost, isActive, isPausedByBudget, isReschedulable } from '../../state/pods.ts'
import { nodeClaimConditions } from '../nodeclaim-lifecycle/conditions.ts'
import { deleteClaim } from '../nodeclaim-lifecycle/delete-claim.ts'

const reason: DisruptionReason = 'Empty'
const defaultBudgets = [{ nodes: '10%' }]
const unsyncedMs = 1000
const writeAttempts = 3

/** A node that may go, with everything known to be there. */
type Candidate = StateNode &
  Required<{ readonly node: Node }> & { readonly claim: NonNullable<StateNode['claim']> }

/** Looks at all nodes in turn and removes empty ones within the budgets. */
export class Emptiness {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    try {
      return await this.#pass(signal)
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      throw error
    }
  }

  async #pass(signal: AbortSignal): Promise<ReconcileResult> {
    const { state, settings, clock } = this.#context
    if (!state.synced()) return { kind: 'after', delayMs: unsyncedMs }
    await this.#cleanUp()
    const proposed = new Set(this.#withinBudget(this.#candidates()).map(({ providerID }) => providerID))
    if (proposed.size === 0) return { kind: 'after', delayMs: settings.disruptionPollMs }
    await clock.sleep(settings.validationDelayMs, signal)
    if (!state.synced()) return { kind: 'after', delayMs: unsyncedMs }
    const accepted = this.#withinBudget(
      this.#candidates().filter(({ providerID }) => proposed.has(providerID)),
    )
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
      this.#isEmpty(node)
    )
  }

  /** Nothing on the node costs anything to move, and no pod forbids touching it (disruption.md 3, 4). */
  #isEmpty(node: Node): boolean {
    const { state, caches, clock } = this.#context
    const pods = state.podsOn(node.metadata.name)
    const now = clock.now()
    return (
      !pods.some((pod) => isReschedulable(pod) && evictionCost(pod) > 0) &&
      !pods.some((pod) => isActive(pod) && doNotDisrupt(pod, now).kind === 'active') &&
      !pods.some((pod) => isPausedByBudget(pod, caches.podDisruptionBudgets.list(), now))
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
    // A node or claim that keeps changing waits for the next pass; the others need not.
    if (!(await this.#taint(node, true)) || !(await this.#setReason(claim))) return
    // A pod may have been bound while the taint was on its way.
    if (!this.#isEmpty(node)) return
    state.mark(providerID)
    try {
      if (!(await deleteClaim(this.#context, claim, reason.toLowerCase()))) return
    } catch (error) {
      state.unmark(providerID)
      throw error
    }
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

  /** @returns whether the Node is now as wanted. */
  async #taint(node: Node, isWanted: boolean): Promise<boolean> {
    const key = { name: node.metadata.name }
    return await this.#write(
      node,
      () => this.#context.client.get(kinds.node, key),
      async (latest) => {
        const taints = latest.spec?.taints ?? []
        const others = taints.filter((taint) => !sameTaint(taint, disruptedTaint))
        if (isWanted === others.length < taints.length) return
        const patch = mergePatchOf(latest, {
          ...latest,
          spec: { ...latest.spec, taints: isWanted ? [...taints, disruptedTaint] : others },
        })
        await this.#context.client.patch(kinds.node, key, patch ?? {}, {
          resourceVersion: latest.metadata.resourceVersion ?? '',
        })
      },
    )
  }

  async #setReason(claim: Candidate['claim']): Promise<boolean> {
    return await this.#writeConditions(claim, (latest) =>
      ConditionSet.of(latest, nodeClaimConditions).set(
        { type: 'DisruptionReason', status: 'True', reason, message: reason },
        this.#context.clock.now(),
      ),
    )
  }

  async #clearReason(claim: Candidate['claim']): Promise<boolean> {
    return await this.#writeConditions(claim, (latest) =>
      ConditionSet.of(latest, nodeClaimConditions).clear('DisruptionReason'),
    )
  }

  async #writeConditions(
    claim: Candidate['claim'],
    wanted: (latest: Candidate['claim']) => ConditionSet,
  ): Promise<boolean> {
    const key = { name: claim.metadata.name }
    return await this.#write(
      claim,
      () => this.#context.client.get(karpenterKinds.nodeClaim, key),
      async (latest) => {
        await this.#context.client.patch(
          karpenterKinds.nodeClaim,
          key,
          { status: { conditions: wanted(latest).conditions } },
          { subresource: 'status', resourceVersion: latest.metadata.resourceVersion ?? '' },
        )
      },
    )
  }

  /**
   * Writes over the cached object, and over the current one when that has moved on meanwhile.
   * @returns false when the object is gone or changes faster than it can be written.
   */
  async #write<T>(
    cached: T,
    current: () => Promise<T | undefined>,
    write: (object: T) => Promise<void>,
  ): Promise<boolean> {
    let object: T | undefined = cached
    for (let attempt = 0; attempt < writeAttempts && object !== undefined; attempt++) {
      try {
        await write(object)
        return true
      } catch (error) {
        if (isKubeError(error, 'notFound')) return false
        if (!isKubeError(error, 'conflict')) throw error
        object = await current()
      }
    }
    return false
  }
}
