/** `disruption.queue`: begins what was decided, and sees it through (disruption.md 14, 15). */
import { isConditionTrue, labels, type NodeClaim, type Unavailability } from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import { type Clock, Listeners } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import { FailureBackoff } from '../../state/failure-backoff.ts'
import type { Overtaken } from '../../provisioning/claims/overtaken.ts'
import type { Command, Replacement } from './command.ts'
import type { CommandEnd, UnderWay } from './command-end.ts'
import type { CommandStart } from './command-start.ts'
import type { CommandTraces } from './command-end.ts'
import type { Replacements } from './replacements.ts'
import type { PodMoves } from './command-end.ts'

interface Dependencies {
  readonly start: CommandStart
  readonly end: CommandEnd
  readonly traces: CommandTraces
  readonly replacements: Replacements
  readonly moves: PodMoves
  readonly clock: Clock
}

const pollMs = 1000
/** While pods move in waves. */
const wavePollMs = 250
const perNodeMs = 80
/** The first time a command comes to nothing its nodes may be tried again at once. */
const retreatBackoff = { freeFailures: 1, baseMs: 60_000, capMs: 16 * 60_000, memoryMs: 60 * 60_000 } as const
const leastTimeoutMs = 10 * 60_000
const longestTimeoutMs = 60 * 60_000

/** After which time a command is given up; longer the more nodes are in the queue (disruption.md 1). */
export function commandTimeoutMs(queuedNodes: number): number {
  return Math.min(longestTimeoutMs, Math.max(leastTimeoutMs, perNodeMs * queuedNodes))
}

/** Commands under way. */
export class Commands implements ControllerSpec {
  readonly name = 'disruption.queue'
  readonly concurrency = { least: 100, most: 1000 }
  readonly #deps: Dependencies
  /** Nodes whose commands came to nothing, by provider ID. */
  readonly #retreats: FailureBackoff
  readonly #underWay = new Map<string, UnderWay>()
  readonly #queued = new Map<string, string>()
  /** Ids of commands that are to be looked at now. */
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

  /** A claim goes: a command that counts on it is looked at before anybody decides on what is left. */
  #missReplacement(claim: string): void {
    for (const [id, { successors }] of this.#underWay)
      if (successors.some(({ metadata }) => metadata.name === claim)) this.#due.notify(id)
  }

  /** Whether a command is about the node. */
  has(providerID: string): boolean {
    return this.#queued.has(providerID)
  }

  /** Whether the node's last commands came to nothing, and it is not yet time to try again. */
  isBackingOff(providerID: string): boolean {
    return this.#retreats.leftMs(providerID) > 0
  }

  /**
   * Why no node of the pool is launched in place of others for now: the last one did not come up, and it is
   * not yet time for the next one, or not yet known what becomes of it.
   */
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
   * Marks the nodes, creates what comes in their place, and takes the command on.
   * @returns undefined when that is done, or no node may go any more; else why it cannot be done.
   * @throws KubeError. Then, as when it cannot be done, the marks are taken off, by the next pass of the loop if need
   * be; claims that were created stay.
   */
  async begin(command: Command, signal: AbortSignal): Promise<Overtaken | undefined> {
    const { start } = this.#deps
    const untried = new Set(command.replacements)
    const queued = command.candidates.find(({ providerID }) => this.has(providerID))
    try {
      const overtaken: Overtaken | undefined =
        queued === undefined
          ? await this.#start(command, untried, signal)
          : { kind: 'commandUnderWay', node: queued.node.metadata.name }
      if (overtaken === undefined) return undefined
      start.tellOvertaken(command, overtaken)
      if (queued === undefined && !signal.aborted) await this.#retreat(command, overtaken.kind === 'paused')
      return overtaken
    } catch (error) {
      if (!signal.aborted) await this.#retreat(command, isKubeError(error, 'conflict'))
      throw error
    } finally {
      for (const replacement of untried) replacement.abandon?.()
    }
  }

  /** @param untried as {@link CommandStart.create} takes it. */
  async #start(
    command: Command,
    untried: Set<Replacement>,
    signal: AbortSignal,
  ): Promise<Overtaken | undefined> {
    const { clock, moves, start, traces } = this.#deps
    const id = start.newId()
    const paused = start.pausedBy(command)
    if (paused !== undefined) return paused
    const marked = await start.mark(command)
    // The marks took time to write.
    const pausedNow = start.pausedBy(command)
    if (pausedNow !== undefined) return pausedNow
    const successors = await start.create(command, untried, signal)
    if ('kind' in successors) return successors
    // Not before: the provisioner would launch nodes for the same pods.
    const going = { ...command, candidates: marked }
    traces.begun(going, successors)
    for (const { providerID } of marked) this.#queued.set(providerID, id)
    this.#underWay.set(id, {
      command: going,
      successors,
      launched: new Set(),
      initialized: new Set(),
      deleted: new Set(),
      isLookedAt: false,
      sinceMs: clock.monotonic(),
      waves: moves.of(marked, command.waves),
    })
    moves.begun(going, successors)
    start.tell(id, going, successors)
    this.#due.notify(id)
    return undefined
  }

  /** @param isNoFailure whether an object has changed meanwhile, or a pause has begun: the nodes may be tried at once. */
  async #retreat(command: Command, isNoFailure = false): Promise<void> {
    if (!isNoFailure) this.#retreats.note(command.candidates.map(({ providerID }) => providerID))
    await this.#deps.start.retreat(command)
  }

  /** Looks at one command. */
  async reconcile(id: string, signal: AbortSignal): Promise<ReconcileResult> {
    const underWay = this.#underWay.get(id)
    if (underWay === undefined) return done
    const paused = this.#deps.start.pausedBy(underWay.command)
    return paused === undefined
      ? await this.#advance(id, underWay, signal)
      : await this.#takeBack(id, underWay, paused)
  }

  async #advance(id: string, underWay: UnderWay, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, end, replacements, traces } = this.#deps
    const { successors, initialized } = underWay
    for (const successor of successors) {
      const { name } = successor.metadata
      const current = traces.known(successor)
      const wasReady = initialized.has(name)
      if ((current?.status?.providerID ?? '') !== '') underWay.launched.add(name)
      // Also one that is on its way out: its room is free for others already, and so is that of the nodes that go.
      // Once a node has gone for it there is no way back.
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
    if (await this.#lookAgain(id, underWay, isReady, signal)) return done
    const haveMoved = isReady && underWay.waves.advance()
    if (haveMoved && (await end.finish(underWay))) {
      this.#forget(id, underWay)
      this.#retreats.forget(underWay.command.candidates.map(({ providerID }) => providerID))
      end.succeeded(id)
      return done
    }
    if (clock.monotonic() - underWay.sinceMs >= commandTimeoutMs(this.#queued.size))
      return await this.#giveUp(id, underWay, 'it timed out', true)
    return { kind: 'after', delayMs: isReady && !haveMoved ? wavePollMs : pollMs }
  }

  /**
   * Looks at the nodes for as long as none of their pods has moved; last, and freshly, once all else is ready.
   * @returns whether nothing is left of the command.
   */
  async #lookAgain(id: string, underWay: UnderWay, isReady: boolean, signal: AbortSignal): Promise<boolean> {
    if (underWay.isLookedAt) return false
    if (await this.#letStay(id, underWay, 'cache', signal)) return true
    if (!isReady) return false
    if (await this.#letStay(id, underWay, 'fresh', signal)) return true
    underWay.isLookedAt = true
    return false
  }

  /**
   * Lets nodes stay of which pods do not allow otherwise any more: empty ones each by itself, others with all of their
   * command. @returns whether nothing is left of the command.
   */
  async #letStay(
    id: string,
    underWay: UnderWay,
    from: 'cache' | 'fresh',
    signal: AbortSignal,
  ): Promise<boolean> {
    const { end } = this.#deps
    const { command } = underWay
    const answers = await Promise.all(
      command.candidates.map(async (candidate) => ({
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
    if (command.reason !== 'Empty' || staying.length === command.candidates.length) {
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

  /** Lets the nodes stay that do not drain yet: nobody has failed. */
  async #takeBack(id: string, underWay: UnderWay, paused: Overtaken): Promise<ReconcileResult> {
    await this.#release(underWay)
    this.#deps.end.tookBack(id, underWay.command, paused)
    this.#forget(id, underWay)
    return done
  }

  async #release({ command, deleted }: UnderWay): Promise<void> {
    const { end, traces } = this.#deps
    // What drains already must not take pods again.
    const staying = command.candidates.filter(({ claim }) => !deleted.has(claim.metadata.name))
    // First, as nodes that are marked count as gone where limits are kept.
    traces.released(staying)
    for (const candidate of staying) await end.takeOff(candidate)
  }

  /** Lets the nodes stay. Replacements that exist stay too, and serve pods. */
  async #giveUp(id: string, underWay: UnderWay, because: string, isLate = false): Promise<ReconcileResult> {
    const { end, replacements } = this.#deps
    const { command, successors, launched, initialized } = underWay
    await this.#release(underWay)
    this.#retreats.note(command.candidates.map(({ providerID }) => providerID))
    const late = successors.filter(({ metadata }) => !initialized.has(metadata.name))
    // One that had an instance and is gone by now was taken away by somebody.
    const failed = late.filter(({ metadata }) => isLate || !launched.has(metadata.name))
    replacements.failed(failed.map(nodePoolOf))
    end.gaveUp(id, command, { late: late.length, because })
    this.#forget(id, underWay)
    return done
  }

  #forget(id: string, { command }: UnderWay): void {
    this.#underWay.delete(id)
    for (const { providerID } of command.candidates) this.#queued.delete(providerID)
  }
}

const nodePoolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''
