/** `disruption.queue`: begins what was decided, and sees it through (disruption.md 14, 15). */
import {
  isConditionTrue,
  type KubeObject,
  labels,
  type NodeClaim,
  type Pod,
  type Unavailability,
} from '@tenon/api'
import { done, type EventRecorder, isKubeError, type ReconcileResult } from '@tenon/kube'
import { type Clock, Listeners, type Logger, type Random, uuid } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import { isExpectedFailure, OvertakenError } from '../../cloud/expected-failures.ts'
import { type Caches, indexes } from '../../cluster/caches.ts'
import { FailureBackoff } from '../../cluster/failure-backoff.ts'
import type { EvictionQueue } from '../../node/termination/eviction-queue.ts'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import type { Candidate } from '../candidates.ts'
import { type Command, decisionOf, logFields, policyLabel, poolsOf, type Replacement } from './command.ts'
import type { DisruptionMarks } from './marks.ts'
import { Replacements } from './replacements.ts'
import { Waves } from './waves.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly deleter: ClaimDeleter
  readonly caches: Caches
  readonly state: ClusterState
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

const pollMs = 1000
/** While pods move in waves. */
const wavePollMs = 250
const perNodeMs = 80
/** The first time a command comes to nothing its nodes may be tried again at once. */
const retreatBackoff = { freeFailures: 1, baseMs: 60_000, capMs: 16 * 60_000, memoryMs: 60 * 60_000 } as const
const leastTimeoutMs = 10 * 60_000
const longestTimeoutMs = 60 * 60_000

interface UnderWay {
  readonly command: Command
  readonly successors: readonly NodeClaim[]
  /** Names of successors that have an instance. */
  readonly launched: Set<string>
  readonly initialized: Set<string>
  readonly deleted: Set<string>
  readonly sinceMs: number
  readonly waves: Waves
}

/** After which time a command is given up; longer the more nodes are in the queue (disruption.md 1). */
export function commandTimeoutMs(queuedNodes: number): number {
  return Math.min(longestTimeoutMs, Math.max(leastTimeoutMs, perNodeMs * queuedNodes))
}

/** Commands under way. */
export class Commands implements ControllerSpec {
  readonly name = 'disruption.queue'
  readonly concurrency = { least: 100, most: 1000 }
  readonly #deps: Dependencies
  readonly #marks: DisruptionMarks
  /** Nodes whose commands came to nothing, by provider ID. */
  readonly #retreats: FailureBackoff
  readonly #replacements: Replacements
  readonly #underWay = new Map<string, UnderWay>()
  readonly #queued = new Map<string, string>()
  /** Ids of commands that are to be looked at now. */
  readonly #due = new Listeners<string>()
  readonly #evictions: Pick<EvictionQueue, 'add'>

  /** @param evictions evicts pods within their PDBs. */
  constructor(deps: Dependencies, marks: DisruptionMarks, evictions: Pick<EvictionQueue, 'add'>) {
    this.#deps = deps
    this.#evictions = evictions
    this.#marks = marks
    this.#retreats = new FailureBackoff(deps.clock, retreatBackoff)
    this.#replacements = new Replacements(deps)
    deps.caches.nodeClaims.onChange(({ kind, object: { metadata } }) => {
      if (kind === 'deleted' || metadata.deletionTimestamp !== undefined) this.#missReplacement(metadata.name)
    })
  }

  watch(enqueue: Enqueue): void {
    this.#due.add(enqueue)
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
    const untilMs = this.#replacements.untilMs(pool)
    const failure = this.#deps.state.launchFailures.get(pool)
    const because = `the last node to replace others did not come up${failure === undefined ? '' : `: ${failure}`}`
    if (untilMs !== undefined) return { because, untilMs }
    return this.#replacements.hasFailed(pool) && this.#isAwaited(pool) ? { because } : undefined
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
   * @throws when that fails. Then the marks are taken off, by the next pass of the loop if need be; claims
   * that were created stay.
   */
  async begin(command: Command, signal: AbortSignal): Promise<void> {
    const { state, random, clock } = this.#deps
    const id = uuid(random)
    const replacements = new Set(command.replacements)
    const queued = command.candidates.find(({ providerID }) => this.has(providerID))
    try {
      if (queued !== undefined)
        throw new OvertakenError(`node ${queued.node.metadata.name} is being disrupted already`)
      const marked = await this.#mark(command)
      const going = marked.filter((candidate) => command.mayStillGo?.(candidate) ?? true)
      if (going.length === 0) return
      const successors = await this.#create(command, replacements, signal)
      if (command.reason === 'Drifted')
        for (const pool of poolsOf(command)) state.rollouts.replace(pool, successors)
      // Not before: the provisioner would launch nodes for the same pods.
      for (const { providerID } of going) {
        state.mark(providerID)
        this.#queued.set(providerID, id)
      }
      for (const { providerID } of command.destinations)
        if (!this.#isDrifted(providerID)) state.nominate(providerID, this.#nominationMs)
      // Pods that are moved are moved once: where they come to they are left alone for a while.
      for (const claim of [...command.destinations.map((each) => each.claim), ...successors])
        if (claim !== undefined) state.recentlyFilledNodes.fill(claim.metadata.name)
      this.#underWay.set(id, {
        command: { ...command, candidates: going },
        successors,
        launched: new Set(),
        initialized: new Set(),
        deleted: new Set(),
        sinceMs: clock.monotonic(),
        waves: new Waves(this.#deps, wavesOf(going, command.waves), (pods) => {
          this.#evictions.add(pods, Number.POSITIVE_INFINITY)
        }),
      })
      this.#moves({ ...command, candidates: going })
      this.#deps.logger.info('disrupting node(s)', logFields(id, command))
      this.#count(command)
      this.#due.notify(id)
    } catch (error) {
      if (queued === undefined && !signal.aborted) await this.#retreat(command, error)
      throw error
    } finally {
      for (const replacement of replacements) replacement.abandon?.()
    }
  }

  /** A drifted node goes next, and pods that still have a node may go elsewhere. */
  #isDrifted(providerID: string): boolean {
    const claims = this.#deps.caches.nodeClaims.byIndex(indexes.byProviderId, providerID)
    return claims.some((claim) => isConditionTrue(claim, 'Drifted'))
  }

  /** Remembers whose pods consolidation moves, where that is to have consequences. */
  #moves({ reason, candidates }: Command): void {
    const { state, settings } = this.#deps
    if (reason !== 'Underutilized' || settings.compatibility === 'karpenter') return
    state.movedPods.move(candidates.flatMap(({ pods }) => pods))
  }

  /** Undoes what {@link begin} has done so far, as well as that goes. */
  async #retreat({ candidates }: Command, because: unknown): Promise<void> {
    const { state, logger } = this.#deps
    if (!isKubeError(because, 'conflict')) this.#retreats.note(candidates.map(({ providerID }) => providerID))
    await Promise.all(
      candidates.map(async ({ node, claim }) => {
        state.poolClaims.unmark(claim.metadata.name)
        try {
          await this.#marks.takeOff(node, claim)
        } catch (error) {
          logger.debug('marks of a command that was not begun stay until the next pass', {
            Node: { name: node.metadata.name },
            error,
          })
        }
      }),
    )
  }

  get #nominationMs(): number {
    return Math.max(2 * this.#deps.settings.batchMaxMs, 10_000)
  }

  /** The candidates that carry the marks; all of them where something has to come in their place. */
  async #mark({ candidates, replacements, reason }: Command): Promise<readonly Candidate[]> {
    const { caches, state } = this.#deps
    const outcomes = await Promise.allSettled(
      candidates.map(async ({ node, claim, pool }) => {
        await this.#marks.taint(node, true)
        await this.#marks.setReason(claim, reason)
        if (caches.nodePools.get({ name: pool.metadata.name })?.spec.replicas !== undefined)
          state.poolClaims.markPendingDisruption(claim.metadata.name)
      }),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    const marked = candidates.filter((_, index) => outcomes[index]?.status === 'fulfilled')
    if (failed !== undefined && (replacements.length > 0 || marked.length === 0)) throw failed.reason
    return marked
  }

  async #create(
    { replacements, candidates }: Command,
    untried: Set<Replacement>,
    signal: AbortSignal,
  ): Promise<readonly NodeClaim[]> {
    const replaced = candidates.map(({ claim }) => claim)
    const outcomes = await Promise.allSettled(
      replacements.map((replacement) => {
        untried.delete(replacement)
        return replacement.create(replaced, signal)
      }),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) {
      if (!signal.aborted && !isKubeError(failed.reason, 'conflict'))
        this.#replacements.failed(replacements.map(({ nodePool }) => nodePool))
      throw failed.reason
    }
    return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  }

  /** Looks at one command. */
  async reconcile(id: string): Promise<ReconcileResult> {
    const underWay = this.#underWay.get(id)
    if (underWay === undefined) return done
    const { command, successors, initialized } = underWay
    for (const successor of successors) {
      const { name } = successor.metadata
      const current = this.#known(successor)
      const wasReady = initialized.has(name)
      if ((current?.status?.providerID ?? '') !== '') underWay.launched.add(name)
      // Also one that is on its way out: its room is free for others already, and so is that of the nodes that go.
      // Once a node has gone for it there is no way back.
      if (
        (current === undefined || current.metadata.deletionTimestamp !== undefined) &&
        underWay.deleted.size === 0
      ) {
        const because = wasReady ? 'was ready and went again' : 'is gone'
        return await this.#giveUp(id, underWay, `its replacement ${name} ${because}`)
      }
      if (wasReady || current === undefined) continue
      this.#tell(current, 'DisruptionLaunching', `Launching NodeClaim: ${command.reason}`, command.reason)
      if (isConditionTrue(current, 'Initialized')) {
        initialized.add(name)
        this.#replacements.succeeded(nodePoolOf(current))
      } else
        this.#tell(current, 'DisruptionWaitingReadiness', 'Waiting until the replacement can run pods', '')
    }
    const isReady = successors.every(({ metadata }) => initialized.has(metadata.name))
    const haveMoved = isReady && underWay.waves.advance()
    if (haveMoved && (await this.#finish(underWay))) {
      this.#forget(id, underWay)
      this.#retreats.forget(command.candidates.map(({ providerID }) => providerID))
      this.#deps.logger.debug('command succeeded', { 'command-id': id })
      return done
    }
    if (this.#deps.clock.monotonic() - underWay.sinceMs >= commandTimeoutMs(this.#queued.size))
      return await this.#giveUp(id, underWay, 'it did not come to an end in time', true)
    return { kind: 'after', delayMs: isReady && !haveMoved ? wavePollMs : pollMs }
  }

  /** A claim as it is by now; the state knows new ones before the caches show them. */
  #known({ metadata }: NodeClaim): NodeClaim | undefined {
    const { caches, state } = this.#deps
    const current = caches.nodeClaims.get({ name: metadata.name }) ?? state.seedOf(metadata.name)
    return current?.metadata.uid === metadata.uid ? current : undefined
  }

  /** Deletes the claims of the nodes that go, unless others have. */
  async #finish({ command, deleted, waves }: UnderWay): Promise<boolean> {
    const { logger } = this.#deps
    const { reason, candidates } = command
    // Replacements may have taken long.
    this.#moves(command)
    const outcomes = await Promise.all(
      candidates.map(async ({ claim, node, pool }) => {
        const { name } = claim.metadata
        if (deleted.has(name)) return true
        const current = this.#known(claim)
        if (current !== undefined && current.metadata.deletionTimestamp === undefined) {
          const policy = reason === 'Drifted' ? '' : policyLabel(pool.spec.disruption?.consolidationPolicy)
          try {
            const account = { policy, movedPods: waves.movedFrom(node.metadata.name) }
            if (await this.#deps.deleter.delete(claim, reason.toLowerCase(), undefined, account))
              for (const object of [node, claim])
                this.#tell(object, 'DisruptionTerminating', `Disrupting ${object.kind}: ${reason}`, reason)
          } catch (error) {
            const fields = { NodeClaim: { name }, error }
            if (isExpectedFailure(error)) logger.warn('deleting a disrupted nodeclaim failed', fields)
            else logger.error('deleting a disrupted nodeclaim failed', fields)
            return false
          }
        }
        deleted.add(name)
        return true
      }),
    )
    return outcomes.every(Boolean)
  }

  /** Lets the nodes stay. Replacements that exist stay too, and serve pods. */
  async #giveUp(id: string, underWay: UnderWay, because: string, isLate = false): Promise<ReconcileResult> {
    const { state, logger, metrics } = this.#deps
    const { command, successors, launched, initialized, deleted } = underWay
    // What drains already must not take pods again.
    const staying = command.candidates.filter(({ claim }) => !deleted.has(claim.metadata.name))
    // First, as nodes that are marked count as gone where limits are kept.
    for (const { claim, providerID } of staying) {
      state.unmark(providerID)
      state.poolClaims.unmark(claim.metadata.name)
    }
    for (const { node, claim } of staying) await this.#marks.takeOff(node, claim)
    this.#retreats.note(command.candidates.map(({ providerID }) => providerID))
    const decision = decisionOf(command)
    const late = successors.filter(({ metadata }) => !initialized.has(metadata.name))
    // One that had an instance and is gone by now was taken away by somebody.
    const failed = late.filter(({ metadata }) => isLate || !launched.has(metadata.name))
    this.#replacements.failed(failed.map(nodePoolOf))
    // Users of Karpenter know the decision under this label, too (operations.md 9.1).
    const series = { decision, reason: command.reason.toLowerCase(), consolidation_type: decision }
    metrics.disruptionQueueFailures.inc(series, late.length)
    logger.warn('failed to disrupt node(s)', {
      'command-id': id,
      Nodes: command.candidates.map(({ node }) => node.metadata.name),
      error: new Error(because),
    })
    this.#forget(id, underWay)
    return done
  }

  #forget(id: string, { command }: UnderWay): void {
    this.#underWay.delete(id)
    for (const { providerID } of command.candidates) this.#queued.delete(providerID)
  }

  #count(command: Command): void {
    const { metrics } = this.#deps
    const decision = decisionOf(command)
    const series = { decision, reason: command.reason.toLowerCase(), consolidation_type: command.type }
    metrics.disruptionDecisions.inc(series)
    for (const nodepool of poolsOf(command)) metrics.disruptionDecisionsByPool.inc({ nodepool, ...series })
  }

  #tell(object: KubeObject, eventReason: string, message: string, value: string): void {
    const { uid, name } = object.metadata
    this.#deps.events.record({
      object,
      type: 'Normal',
      reason: eventReason,
      message,
      dedupe: value === '' ? [uid ?? name] : [uid ?? name, value],
    })
  }
}

const nodePoolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

/** The pods of these nodes, wave by wave; a node that could not be marked stays, and so do its pods. */
function wavesOf(going: readonly Candidate[], waves: Command['waves'] = []): readonly (readonly Pod[])[] {
  const names = new Set(going.map(({ node }) => node.metadata.name))
  return waves.map((wave) => wave.filter(({ spec }) => names.has(spec.nodeName ?? '')))
}
