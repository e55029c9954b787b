/**
 * `disruption.queue`: carries out commands. It taints the nodes, creates replacements, waits until these are initialized,
 * and deletes the claims of the nodes (disruption.md 14, 15).
 */
import { isConditionTrue, labels, type NodeClaim, type Unavailability } from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import { type Clock, inTrace, Listeners, type Span, traced, type Tracer } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import { FailureBackoff } from '../../state/failure-backoff.ts'
import { traceOf } from '../../nodeclaim/claim-traces.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import { type Command, decisionOf, poolsOf, type Replacement } from './command.ts'
import type { CommandEnd, CommandTraces, PodMoves, UnderWay } from './command-end.ts'
import type { CommandStart } from './command-start.ts'
import type { Replacements } from './replacements.ts'

interface Dependencies {
  readonly start: CommandStart
  readonly end: CommandEnd
  readonly traces: CommandTraces
  readonly replacements: Replacements
  readonly moves: PodMoves
  readonly clock: Clock
  readonly tracer: Tracer | undefined
}

const pollMs = 1000
/** While pods move in waves. */
const wavePollMs = 250
const perNodeMs = 80
/** Backoff of nodes whose commands failed; after the first failure they may be tried again at once. */
const retreatBackoff = { freeFailures: 1, baseMs: 60_000, capMs: 16 * 60_000, memoryMs: 60 * 60_000 } as const
const leastTimeoutMs = 10 * 60_000
const longestTimeoutMs = 60 * 60_000
/** Of the nodes of one command, in spans. */
const mostTraced = 100

/** Timeout of a command; it grows with the number of nodes in the queue (disruption.md 1). */
export function commandTimeoutMs(queuedNodes: number): number {
  return Math.min(longestTimeoutMs, Math.max(leastTimeoutMs, perNodeMs * queuedNodes))
}

export class Commands implements ControllerSpec {
  readonly name = 'disruption.queue'
  readonly concurrency = { least: 100, most: 1000 }
  readonly #deps: Dependencies
  /** Nodes whose commands failed, by provider ID. */
  readonly #retreats: FailureBackoff
  readonly #underWay = new Map<string, UnderWay>()
  /** Ids of commands, by provider ID of their nodes. */
  readonly #queued = new Map<string, string>()
  /** Ids of commands to reconcile now. */
  readonly #due = new Listeners<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#retreats = new FailureBackoff(deps.clock, retreatBackoff)
    deps.traces.onLeaving((claim) => {
      this.#missReplacement(claim)
    })
  }

  watch(enqueue: Enqueue): void {
    this.#due.add(enqueue)
    this.#deps.start.onPause(() => {
      for (const id of this.#underWay.keys()) this.#due.notify(id)
    })
  }

  /** Reconciles the command whose replacement is being deleted, before the next decision. */
  #missReplacement(claim: string): void {
    for (const [id, { successors }] of this.#underWay)
      if (successors.some(({ metadata }) => metadata.name === claim)) this.#due.notify(id)
  }

  /** Checks again whether nodes may go that have not been deleted: nothing was done for a while, and much may have changed. */
  verifyAgain(): void {
    for (const underWay of this.#underWay.values()) underWay.isVerified = false
  }

  /** Whether a command is about the node. */
  has(providerID: string): boolean {
    return this.#queued.has(providerID)
  }

  /** Whether the last command of the node failed a short while ago. */
  isBackingOff(providerID: string): boolean {
    return this.#retreats.leftMs(providerID) > 0
  }

  /** Why no replacement of the NodePool is launched now: the last one did not become a node; undefined if one may be. */
  whyNoLaunch(pool: string): Unavailability | undefined {
    return this.#deps.replacements.whyNone(pool, () => this.#isAwaited(pool))
  }

  #isAwaited(pool: string): boolean {
    for (const { command, successors, initialized } of this.#underWay.values())
      if (
        successors.length > initialized.size &&
        command.replacements.some(({ nodePool }) => nodePool === pool)
      )
        return true
    return false
  }

  /**
   * Taints the nodes, creates the replacements, and queues the command.
   * @returns undefined if that was done, or if no node may go any more; else what has changed since the decision.
   * @throws KubeError. Then, as after a change, the taints are removed, if need be by the next pass; NodeClaims that were
   * created stay.
   */
  async begin(command: Command, signal: AbortSignal): Promise<Overtaken | undefined> {
    const span = spanOf(this.#deps.tracer, command)
    try {
      const overtaken = await inTrace(span?.context, () => this.#begin(command, span, signal))
      if (overtaken !== undefined) span?.end(overtaken.kind)
      return overtaken
    } catch (error) {
      span?.end(error)
      throw error
    }
  }

  async #begin(
    command: Command,
    span: Span | undefined,
    signal: AbortSignal,
  ): Promise<Overtaken | undefined> {
    const { start } = this.#deps
    const untried = new Set(command.replacements)
    const queued = command.candidates.find(({ providerID }) => this.has(providerID))
    try {
      const overtaken: Overtaken | undefined =
        queued === undefined
          ? await this.#start(command, untried, span, signal)
          : { kind: 'commandUnderWay', node: queued.node.metadata.name }
      if (overtaken === undefined) return undefined
      start.reportOvertaken(command, overtaken)
      if (queued === undefined && !signal.aborted) await this.#retreat(command, overtaken.kind === 'paused')
      return overtaken
    } catch (error) {
      if (!signal.aborted) await this.#retreat(command, isKubeError(error, 'conflict'))
      throw error
    } finally {
      for (const replacement of untried) replacement.abandon?.()
    }
  }

  /** @param untried replacements that nobody has tried to create; what is left in it is abandoned. */
  async #start(
    command: Command,
    untried: Set<Replacement>,
    span: Span | undefined,
    signal: AbortSignal,
  ): Promise<Overtaken | undefined> {
    const { clock, moves, start, tracer, traces } = this.#deps
    const id = start.newId()
    const paused = start.pausedBy(command)
    if (paused !== undefined) return paused
    const marked = await traced(tracer, 'taint nodes', {}, () => start.mark(command))
    // Writing the taints took time.
    const pausedNow = start.pausedBy(command)
    if (pausedNow !== undefined) return pausedNow
    const successors = await this.#create(command, untried, signal)
    if ('kind' in successors) return successors
    // Not earlier: the provisioner would launch nodes for the same pods.
    const going = { ...command, candidates: marked }
    traces.begun(going, successors)
    for (const { providerID } of marked) this.#queued.set(providerID, id)
    this.#underWay.set(id, {
      command: going,
      successors,
      launched: new Set(),
      initialized: new Set(),
      deleted: new Set(),
      isVerified: false,
      sinceMs: clock.monotonic(),
      waves: moves.of(marked, command.waves),
      span,
      step: span && tracer?.start('wait', { parent: span.context }),
    })
    moves.begun(going, successors)
    start.reportBegun(id, going, successors)
    this.#due.notify(id)
    return undefined
  }

  async #create(
    command: Command,
    untried: Set<Replacement>,
    signal: AbortSignal,
  ): Promise<readonly NodeClaim[] | Overtaken> {
    const { start, tracer } = this.#deps
    if (command.replacements.length === 0) return await start.create(command, untried, signal)
    return await traced(tracer, 'create', {}, async (span) => {
      const created = await start.create(command, untried, signal)
      if (!('kind' in created)) for (const claim of created) span?.link(traceOf(claim))
      return created
    })
  }

  /** @param isNoFailure whether an object changed, or a pause began: then the nodes need no backoff. */
  async #retreat(command: Command, isNoFailure = false): Promise<void> {
    if (!isNoFailure) this.#retreats.note(command.candidates.map(({ providerID }) => providerID))
    await this.#deps.start.retreat(command)
  }

  async reconcile(id: string, signal: AbortSignal): Promise<ReconcileResult> {
    const underWay = this.#underWay.get(id)
    if (underWay === undefined) return done
    const paused = this.#deps.start.pausedBy(underWay.command)
    return await inTrace(underWay.step?.context, () =>
      paused === undefined ? this.#advance(id, underWay, signal) : this.#takeBack(id, underWay, paused),
    )
  }

  async #advance(id: string, underWay: UnderWay, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, end, replacements, traces } = this.#deps
    const { successors, initialized } = underWay
    for (const successor of successors) {
      const { name } = successor.metadata
      const current = traces.known(successor)
      const wasReady = initialized.has(name)
      if ((current?.status?.providerID ?? '') !== '') underWay.launched.add(name)
      // A replacement that is being deleted counts as gone. Once a node was deleted for it there is no way back.
      if (
        (current === undefined || current.metadata.deletionTimestamp !== undefined) &&
        underWay.deleted.size === 0
      ) {
        const because = wasReady ? 'became ready and disappeared' : 'is gone'
        return await this.#giveUp(id, underWay, `its replacement ${name} ${because}`)
      }
      if (wasReady || current === undefined) continue
      end.launching(current, underWay.command)
      if (isConditionTrue(current, 'Initialized')) {
        initialized.add(name)
        replacements.succeeded(nodePoolOf(current))
      } else end.waiting(current)
    }
    const isReady = successors.every(({ metadata }) => initialized.has(metadata.name))
    if (await this.#verify(id, underWay, isReady, signal)) return done
    const haveMoved = isReady && underWay.waves.advance()
    if (haveMoved && (await this.#finish(underWay))) {
      this.#forget(id, underWay)
      this.#retreats.forget(underWay.command.candidates.map(({ providerID }) => providerID))
      end.succeeded(id)
      return done
    }
    if (clock.monotonic() - underWay.sinceMs >= commandTimeoutMs(this.#queued.size))
      return await this.#giveUp(id, underWay, 'it timed out', true)
    return { kind: 'after', delayMs: isReady && !haveMoved ? wavePollMs : pollMs }
  }

  async #finish(underWay: UnderWay): Promise<boolean> {
    const { end, tracer } = this.#deps
    const { span } = underWay
    underWay.step?.end()
    return await traced(span && tracer, 'delete', { parent: span?.context }, () => end.finish(underWay))
  }

  /**
   * Checks until the first pod moves whether the nodes may still go; the last time by fresh reads.
   * @returns whether nothing is left of the command.
   */
  async #verify(id: string, underWay: UnderWay, isReady: boolean, signal: AbortSignal): Promise<boolean> {
    if (underWay.isVerified) return false
    if (await this.#letStay(id, underWay, 'cache', signal)) return true
    if (!isReady) return false
    if (await this.#letStay(id, underWay, 'fresh', signal)) return true
    underWay.isVerified = true
    return false
  }

  /**
   * Keeps nodes whose pods do not allow them to go any more: empty ones one by one, others with their whole command.
   * @returns whether nothing is left of the command.
   */
  async #letStay(
    id: string,
    underWay: UnderWay,
    from: 'cache' | 'fresh',
    signal: AbortSignal,
  ): Promise<boolean> {
    const { end } = this.#deps
    const { command, deleted } = underWay
    const undecided = command.candidates.filter(({ claim }) => !deleted.has(claim.metadata.name))
    const answers = await Promise.all(
      undecided.map(async (candidate) => ({
        candidate,
        because: await end.whyStays(command, candidate, from, signal),
      })),
    )
    const staying = answers.flatMap(({ candidate, because }) =>
      because === undefined ? [] : [{ candidate, because }],
    )
    const [first] = staying
    if (first === undefined) return false
    for (const { candidate, because } of staying) end.blocked(candidate, because)
    if (command.reason !== 'Empty' || staying.length === undecided.length) {
      const name = first.candidate.node.metadata.name
      await this.#giveUp(id, underWay, `Node ${name} must stay: ${first.because}`)
      return true
    }
    const stays = new Set(staying.map(({ candidate }) => candidate))
    await this.#release({ ...underWay, command: { ...command, candidates: [...stays] } })
    this.#retreats.note([...stays].map(({ providerID }) => providerID))
    for (const { providerID } of stays) this.#queued.delete(providerID)
    underWay.command = { ...command, candidates: command.candidates.filter((each) => !stays.has(each)) }
    return false
  }

  /** Ends a command because of a pause. Nodes that do not drain yet stay, without backoff. */
  async #takeBack(id: string, underWay: UnderWay, paused: Overtaken): Promise<ReconcileResult> {
    await this.#release(underWay)
    this.#deps.end.tookBack(id, underWay.command, paused)
    this.#forget(id, underWay, paused.kind)
    return done
  }

  async #release({ command, deleted }: UnderWay): Promise<void> {
    const { end, traces } = this.#deps
    // A node that drains must not receive pods again.
    const staying = command.candidates.filter(({ claim }) => !deleted.has(claim.metadata.name))
    // First, as limits count tainted nodes as gone.
    traces.released(staying)
    for (const candidate of staying) await end.takeOff(candidate)
  }

  /** Ends a command that failed. Its nodes and the replacements that exist stay, and take pods. */
  async #giveUp(id: string, underWay: UnderWay, because: string, isLate = false): Promise<ReconcileResult> {
    const { end, replacements } = this.#deps
    const { command, successors, launched, initialized } = underWay
    await this.#release(underWay)
    this.#retreats.note(command.candidates.map(({ providerID }) => providerID))
    const late = successors.filter(({ metadata }) => !initialized.has(metadata.name))
    // A replacement that had an instance and is gone was deleted by somebody else.
    const failed = late.filter(({ metadata }) => isLate || !launched.has(metadata.name))
    replacements.failed(failed.map(nodePoolOf))
    end.gaveUp(id, command, { late: late.length, because })
    this.#forget(id, underWay, isLate ? 'timeout' : 'givenUp')
    return done
  }

  /** @param error why it failed; undefined if it did not. */
  #forget(id: string, { command, span, step }: UnderWay, error?: string): void {
    step?.end(error)
    span?.end(error)
    this.#underWay.delete(id)
    for (const { providerID } of command.candidates) this.#queued.delete(providerID)
  }
}

/** One trace for each disruption, with links to those of the claims of its nodes (adoption.md 4). */
function spanOf(tracer: Tracer | undefined, command: Command): Span | undefined {
  const { candidates, reason } = command
  return tracer?.start('disruption', {
    parent: 'none',
    links: candidates.slice(0, mostTraced).map(({ claim }) => traceOf(claim)),
    attributes: {
      'tenon.reason': reason,
      'tenon.decision': decisionOf(command),
      'tenon.nodepools': poolsOf(command),
      'tenon.nodes': candidates.slice(0, mostTraced).map(({ node }) => node.metadata.name),
    },
  })
}

const nodePoolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''
