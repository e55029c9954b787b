/** `disruption.queue`: nodes that go once their successors are initialized (disruption.md 14, 15). */
import { type DisruptionReason, isConditionTrue, karpenterKinds, type NodeClaim } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import { createStaticClaim, nodeLimit } from '../../act/static-claims.ts'
import type { OperatorContext } from '../../context.ts'
import { deleteClaim } from '../nodeclaim-lifecycle/delete-claim.ts'
import { type StaticPool, staticPool } from '../static-provisioning/static-pool.ts'
import type { Candidate } from './candidates.ts'
import type { DisruptionMarks } from './marks.ts'

const reason: DisruptionReason = 'Drifted'
const pollMs = 1000
/** A request without an answer is taken to have ended, one way or the other, after this long. */
const lateMs = 60_000
const perNodeMs = 80
const leastTimeoutMs = 10 * 60_000
const longestTimeoutMs = 60 * 60_000

interface Replacement {
  readonly candidate: Candidate
  readonly successor: NodeClaim
  readonly sinceMs: number
  readonly timeoutMs: number
}

/** Replacements under way, by the provider ID of the node that goes. */
export class Replacements {
  readonly #context: OperatorContext
  readonly #marks: DisruptionMarks
  readonly #underWay = new Map<string, Replacement>()
  /** Names whose creation had no clear answer. */
  readonly #unclear = new Map<string, string>()
  /** Set by the composition root: asks for {@link reconcile} of a provider ID. */
  enqueue: (providerID: string) => void = () => undefined

  constructor(context: OperatorContext, marks: DisruptionMarks) {
    this.#context = context
    this.#marks = marks
  }

  /** Whether the node is being replaced. */
  has(providerID: string): boolean {
    return this.#underWay.has(providerID)
  }

  /** Looks up claims that may have been created although nobody said so, and gives their room back. */
  async settle(signal: AbortSignal): Promise<void> {
    const { client, clock, state } = this.#context
    for (const [name, pool] of this.#unclear) {
      if (state.poolClaims.unsettled(pool).includes(name)) {
        // What can still come to be keeps its room.
        if (!state.poolClaims.unsettled(pool, clock.monotonic() - lateMs).includes(name)) continue
        const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
        if (claim !== undefined) state.seed(claim)
        state.poolClaims.release(name)
      }
      this.#unclear.delete(name)
    }
  }

  /**
   * Marks the node and creates its successor.
   * @param name what is reserved for the successor; it is released whatever happens.
   * @throws when either fails. The next pass of the loop takes the marks off again.
   */
  async begin(pool: StaticPool, candidate: Candidate, name: string, signal: AbortSignal): Promise<void> {
    const { state, logger, clock } = this.#context
    const { claim, node, providerID } = candidate
    logger.info('disrupting node(s)', {
      reason: reason.toLowerCase(),
      decision: 'replace',
      Node: { name: node.metadata.name },
    })
    try {
      if (!(await this.#marks.taint(node, true)) || !(await this.#marks.setReason(claim, reason)))
        throw new Error(`node ${node.metadata.name} changes too fast, or is gone`)
      state.poolClaims.markPendingDisruption(claim.metadata.name)
    } catch (error) {
      state.poolClaims.release(name)
      throw error
    }
    const successor = await this.#create(pool, name, signal)
    // Not before: its pods would get another node from the provisioner.
    state.mark(providerID)
    const timeoutMs = Math.min(
      longestTimeoutMs,
      Math.max(leastTimeoutMs, perNodeMs * (this.#underWay.size + 1)),
    )
    this.#underWay.set(providerID, { candidate, successor, sinceMs: clock.monotonic(), timeoutMs })
    this.enqueue(providerID)
  }

  async #create(pool: StaticPool, name: string, signal: AbortSignal): Promise<NodeClaim> {
    const { state } = this.#context
    const current = staticPool(this.#context, pool.metadata.name)
    if (current === undefined || current.metadata.uid !== pool.metadata.uid) {
      state.poolClaims.release(name)
      throw new Error(`NodePool ${pool.metadata.name} is gone or being deleted`)
    }
    if (state.poolClaims.occupied(pool.metadata.name) > nodeLimit(current)) {
      state.poolClaims.release(name)
      throw new Error(`NodePool ${pool.metadata.name} exceeds its limit for nodes`)
    }
    try {
      return await createStaticClaim(this.#context, current, name, reason.toLowerCase(), signal)
    } catch (error) {
      if (state.poolClaims.unsettled(pool.metadata.name).includes(name))
        this.#unclear.set(name, pool.metadata.name)
      throw error
    }
  }

  /** Looks at one replacement under way. */
  async reconcile(providerID: string): Promise<ReconcileResult> {
    const replacement = this.#underWay.get(providerID)
    if (replacement === undefined) return done
    const { sinceMs, timeoutMs, successor } = replacement
    const current = this.#known(successor)
    if (current === undefined) {
      await this.#giveUp(providerID, replacement, 'its replacement is gone')
      return done
    }
    this.#tell(current, 'DisruptionLaunching', `Launching NodeClaim: ${reason}`)
    if (!isConditionTrue(current, 'Initialized')) {
      this.#tell(current, 'DisruptionWaitingReadiness', 'Waiting until the replacement can run pods')
      if (this.#context.clock.monotonic() - sinceMs < timeoutMs) return { kind: 'after', delayMs: pollMs }
      await this.#giveUp(providerID, replacement, 'its replacement did not initialize in time')
      return done
    }
    if (!(await this.#finish(replacement))) return { kind: 'after', delayMs: pollMs }
    this.#underWay.delete(providerID)
    return done
  }

  /** A claim as it is by now; the state knows new ones before the caches show them. */
  #known({ metadata }: NodeClaim): NodeClaim | undefined {
    const { caches, state } = this.#context
    const current = caches.nodeClaims.get({ name: metadata.name }) ?? state.seedOf(metadata.name)
    return current?.metadata.uid === metadata.uid ? current : undefined
  }

  /** Deletes the claim of the node that goes, unless others have. */
  async #finish({ candidate: { claim, node } }: Replacement): Promise<boolean> {
    const current = this.#known(claim)
    if (current === undefined || current.metadata.deletionTimestamp !== undefined) return true
    try {
      if (!(await deleteClaim(this.#context, claim, reason.toLowerCase()))) return true
    } catch (error) {
      this.#context.logger.error('deleting a replaced nodeclaim failed', {
        NodeClaim: { name: claim.metadata.name },
        error,
      })
      return false
    }
    for (const object of [node, claim])
      this.#tell(object, 'DisruptionTerminating', `Disrupting ${object.kind}: ${reason}`)
    return true
  }

  /** Lets the node stay. A successor that exists stays too, and serves pods. */
  async #giveUp(providerID: string, { candidate }: Replacement, because: string): Promise<void> {
    const { state, caches, logger } = this.#context
    const { node, claim } = candidate
    logger.error('failed to disrupt node', {
      Node: { name: node.metadata.name },
      NodeClaim: { name: claim.metadata.name },
      error: new Error(because),
    })
    await this.#marks.taint(caches.nodes.get({ name: node.metadata.name }) ?? node, false)
    await this.#marks.clearReason(caches.nodeClaims.get({ name: claim.metadata.name }) ?? claim)
    state.unmark(providerID)
    state.poolClaims.unmark(claim.metadata.name)
    this.#underWay.delete(providerID)
  }

  #tell(object: NodeClaim | Candidate['node'], eventReason: string, message: string): void {
    this.#context.events.record({
      object,
      type: 'Normal',
      reason: eventReason,
      message,
      dedupe: [object.metadata.uid ?? object.metadata.name, reason],
    })
  }
}
