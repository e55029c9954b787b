/** `disruption`, method Emptiness: removes nodes that hold no pod (disruption.md 2, 8, 13, 14). */
import {
  type DisruptionReason,
  isConditionTrue,
  type Node,
  type NodePool,
  parseNillableDuration,
} from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import { evictionCost, isReschedulable } from '../../state/pods.ts'
import { deleteClaim } from '../nodeclaim-lifecycle/delete-claim.ts'
import { remainingDisruptions } from './budget.ts'
import { type Candidate, candidates, isHeldByPods } from './candidates.ts'
import type { DisruptionMarks } from './marks.ts'

const reason: DisruptionReason = 'Empty'

/** Removes empty nodes within the budgets. */
export class Emptiness {
  readonly #context: OperatorContext
  readonly #marks: DisruptionMarks

  constructor(context: OperatorContext, marks: DisruptionMarks) {
    this.#context = context
    this.#marks = marks
  }

  /** @returns whether anything was begun. */
  async pass(signal: AbortSignal): Promise<boolean> {
    const { state, settings, clock } = this.#context
    const proposed = new Set(this.#withinBudget(this.#empty()).map(({ providerID }) => providerID))
    if (proposed.size === 0) return false
    await clock.sleep(settings.validationDelayMs, signal)
    if (!state.synced()) return false
    const accepted = this.#withinBudget(this.#empty().filter(({ providerID }) => proposed.has(providerID)))
    for (const candidate of accepted) await this.#disrupt(candidate)
    return accepted.length > 0
  }

  #empty(): readonly Candidate[] {
    return candidates(this.#context).filter((candidate) => {
      const pool = this.#poolOf(candidate)
      return (
        pool !== undefined &&
        pool.spec.replicas === undefined &&
        Number.isFinite(parseNillableDuration(pool.spec.disruption?.consolidateAfter ?? '0s') ?? 0) &&
        isConditionTrue(candidate.claim, 'Consolidatable') &&
        this.#isEmpty(candidate)
      )
    })
  }

  /** Nothing on the node costs anything to move, and no pod forbids touching it (disruption.md 3, 4). */
  #isEmpty(candidate: Candidate): boolean {
    const pods = this.#context.state.podsOn(candidate.node.metadata.name)
    return (
      !pods.some((pod) => isReschedulable(pod) && evictionCost(pod) > 0) &&
      !isHeldByPods(this.#context, candidate)
    )
  }

  #poolOf({ pool: name }: Candidate): NodePool | undefined {
    return this.#context.caches.nodePools.get({ name })
  }

  /** Takes candidates while their pool's budget lasts. */
  #withinBudget(empty: readonly Candidate[]): readonly Candidate[] {
    const remaining = new Map<string, number>()
    return empty.filter((candidate) => {
      const pool = this.#poolOf(candidate)
      if (pool === undefined) return false
      const { name } = pool.metadata
      const left = remaining.get(name) ?? remainingDisruptions(this.#context, pool, reason)
      remaining.set(name, left - 1)
      return left > 0
    })
  }

  async #disrupt(candidate: Candidate): Promise<void> {
    const { state, logger, events } = this.#context
    const { node, claim, providerID } = candidate
    logger.info('disrupting node(s)', {
      reason: reason.toLowerCase(),
      decision: 'delete',
      Node: { name: node.metadata.name },
    })
    // A node or claim that keeps changing waits for the next pass; the others need not.
    if (!(await this.#marks.taint(node, true)) || !(await this.#marks.setReason(claim, reason))) return
    // A pod may have been bound while the taint was on its way.
    if (!this.#isEmpty(candidate)) return
    state.mark(providerID)
    try {
      if (!(await deleteClaim(this.#context, claim, reason.toLowerCase()))) return
    } catch (error) {
      state.unmark(providerID)
      throw error
    }
    const about: readonly (Node | typeof claim)[] = [node, claim]
    for (const object of about) {
      events.record({
        object,
        type: 'Normal',
        reason: 'DisruptionTerminating',
        message: `Disrupting ${object.kind}: ${reason}`,
        dedupe: [object.metadata.name, reason],
      })
    }
  }
}
