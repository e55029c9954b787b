/** `disruption`: looks for nodes to remove or replace, one method after the other (disruption.md 2). */
import type { CloudProvider } from '@tenon/provider'
import { isConditionTrue, type Node } from '@tenon/api'
import { type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, inSlices, type Logger, type Random, type Slicing, type Turns } from '@tenon/runtime'
import { settlePlannedClaims } from '../provisioning/planned-claims.ts'
import { soldOutProvider } from '../cloud/sold-out-provider.ts'
import type { SingletonSpec } from '../controller.ts'
import type { EvictionQueue } from '../node/termination/eviction-queue.ts'
import { sliceMs } from '../decider/slice.ts'
import { isDisrupted, type StateNode } from '../cluster/nodes/state-node.ts'
import { logUnreadableBudgets } from './budget.ts'
import { type Candidate, findCandidates } from './candidates.ts'
import { readCatalogue } from './catalogue.ts'
import { Commands } from './commands/commands.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import { Consolidation } from './methods/consolidation.ts'
import { Drift } from './methods/drift.ts'
import { Emptiness } from './methods/emptiness.ts'
import { explainNodes } from './explain.ts'
import { DisruptionMarks } from './commands/marks.ts'
import type { DisruptionMethod, Pass } from './methods/method.ts'
import { type RemovalGround, removalGround } from './simulation.ts'
import { StaticDrift } from './methods/static-drift.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { SchedulingDecider } from '../decider/decider.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { DisruptionAnswers } from './answers.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { PassAges } from '../metrics/pass-ages.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly deleter: ClaimDeleter
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  readonly answers: DisruptionAnswers
  readonly metrics: Metrics
  readonly passAges: PassAges
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

const unsyncedMs = 1000
/** Instances looked at between two questions whether others are to run. */
const nodesPerStep = 64
/** What one search has read is good for the next for so long. */
const seenLastsMs = 1000

/** What a pass is about. */
type Seen = Pick<Pass, 'candidates' | 'all' | 'catalogue' | 'ground'>

/** What the methods of one pass have from each other. */
interface Round {
  /** What the method before has read, and of which state of the cluster. */
  last?: {
    readonly by: DisruptionMethod
    readonly version: number
    readonly atMs: number
    readonly seen: Seen
  }
}

/** Begins what the first method wants that wants anything; the next pass goes on from there. */
export class Disruption implements SingletonSpec {
  readonly name = 'disruption'
  readonly #deps: Dependencies
  /** The same, where nothing is for sale that may not be launched in place of nodes now. */
  readonly #consolidating: Dependencies
  readonly #marks: DisruptionMarks
  readonly commands: Commands
  readonly #methods: readonly DisruptionMethod[]

  /** @param evictions evicts pods within their PDBs. */
  constructor(deps: Dependencies, evictions: Pick<EvictionQueue, 'add'>) {
    const { featureGates, compatibility } = deps.settings
    this.#deps = deps
    this.#marks = new DisruptionMarks(deps)
    this.commands = new Commands(deps, this.#marks, evictions)
    const provider = soldOutProvider(deps.provider, (pool) => this.commands.whyNoLaunch(pool))
    this.#consolidating = { ...deps, provider }
    deps.answers.ask = (signal) => explainNodes(deps, this.commands, signal)
    this.#methods = [
      new Emptiness(deps),
      new StaticDrift(deps),
      new Drift(deps),
      ...(featureGates.globalConsolidation && compatibility !== 'karpenter'
        ? [new Consolidation(this.#consolidating, 'global')]
        : [
            new Consolidation(this.#consolidating, 'multi'),
            new Consolidation(this.#consolidating, 'single'),
          ]),
    ]
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { passAges, state } = this.#deps
    passAges.waiting(this.name)
    const result = await this.#attempt(signal)
    if (result.kind !== 'backoff' && state.waitingFor().length === 0) passAges.complete(this.name)
    passAges.waiting(this.name)
    return result
  }

  async #attempt(signal: AbortSignal): Promise<ReconcileResult> {
    try {
      return await this.#pass(signal)
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      throw error
    }
  }

  async #pass(signal: AbortSignal): Promise<ReconcileResult> {
    const { state, settings } = this.#deps
    logUnreadableBudgets(this.#deps)
    if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    await settlePlannedClaims(this.#deps, signal)
    await this.#cleanUp()
    // In steps, as what follows asks for all of it at a stretch.
    const nodes = state.stateNodes().flatMap(({ node }) => (node === undefined ? [] : [node.metadata.name]))
    await inSlices(state.podsOnNodes.reading(nodes), this.#slicing)
    const round: Round = {}
    const failures: unknown[] = []
    for (const method of this.#methods) {
      try {
        if (await this.#try(method, round, signal)) return { kind: 'after', delayMs: 0 }
      } catch (error) {
        if (signal.aborted || isKubeError(error, 'conflict')) throw error
        // One method that fails does not keep the others from their turn.
        failures.push(error)
      }
      // Methods may take their time.
      if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    }
    if (failures.length > 0) throw failures[0]
    return { kind: 'after', delayMs: settings.disruptionPollMs }
  }

  async #try(method: DisruptionMethod, round: Round, signal: AbortSignal): Promise<boolean> {
    const deps = method instanceof Consolidation ? this.#consolidating : this.#deps
    const { metrics, clock, state } = deps
    const { reason, type, disruptionClass } = method
    const series = { reason: reason.toLowerCase(), consolidation_type: type }
    const start = clock.monotonic()
    const isWanted = (stateNode: StateNode) =>
      !this.commands.has(stateNode.providerID) &&
      !this.commands.isBackingOff(stateNode.providerID) &&
      method.concerns(stateNode)
    if (method.isQuiet?.() === true) return false
    if (!(await inSlices(this.#isAnyOf(isWanted), this.#slicing))) {
      metrics.disruptionEligibleNodes.set({ reason: reason.toLowerCase() }, 0)
      metrics.disruptionEvaluation.observe(series, (clock.monotonic() - start) / 1000)
      return false
    }
    const read = async (): Promise<Seen> => {
      const catalogue = await readCatalogue(deps, signal)
      const wanted = findCandidates(deps, catalogue, disruptionClass, isWanted)
      const all = await inSlices(wanted, this.#slicing)
      const candidates = await inSlices(acceptedBy(method, all), this.#slicing)
      metrics.disruptionEligibleNodes.set({ reason: reason.toLowerCase() }, candidates.length)
      let ground: Promise<RemovalGround> | undefined
      return {
        catalogue,
        all,
        candidates,
        ground: () => (ground ??= removalGround(deps, candidates, true, signal)),
      }
    }
    try {
      let seen = this.#seenFor(method, round)
      if (seen === undefined) {
        const version = state.consolidation.read()
        seen = await read()
        round.last = { by: method, version, atMs: start, seen }
      }
      if (seen.candidates.length === 0) return false
      const find = async (): Promise<readonly Candidate[]> => (await read()).candidates
      return await method.pass(
        {
          ...seen,
          find,
          mayNotLaunch: (pool) => this.commands.whyNoLaunch(pool) !== undefined,
          begin: (command) => this.commands.begin(command, signal),
        },
        signal,
      )
    } finally {
      metrics.disruptionEvaluation.observe(series, (clock.monotonic() - start) / 1000)
    }
  }

  /** What another search for consolidation has just read, if nothing has changed since. */
  #seenFor(method: DisruptionMethod, { last }: Round): Seen | undefined {
    const { clock, state } = this.#deps
    if (last === undefined || !(last.by instanceof Consolidation) || !(method instanceof Consolidation))
      return undefined
    const isFresh = last.version === state.consolidation.read() && clock.monotonic() - last.atMs < seenLastsMs
    return isFresh ? last.seen : undefined
  }

  *#isAnyOf(isWanted: (instance: StateNode) => boolean): Generator<undefined, boolean, undefined> {
    for (const [index, stateNode] of this.#deps.state.stateNodes().entries()) {
      if (index % nodesPerStep === 0) yield
      if (isWanted(stateNode)) return true
    }
    return false
  }

  /** Takes marks of commands that did not finish off again (disruption.md 2, step 3). */
  async #cleanUp(): Promise<void> {
    for (const { node, claim, isInitialized } of await inSlices(this.#leftMarked(), this.#slicing)) {
      if (node !== undefined && hasLeftTaint(node)) await this.#marks.taint(node, false)
      if (claim !== undefined && isInitialized) await this.#marks.clearReason(claim)
    }
  }

  /** Instances with marks that nothing is under way for, in steps. */
  *#leftMarked(): Generator<undefined, readonly StateNode[], undefined> {
    const marked: StateNode[] = []
    for (const [index, stateNode] of this.#deps.state.stateNodes().entries()) {
      if (index % nodesPerStep === 0) yield
      const { node, claim, providerID, isMarkedForDeletion, isInitialized } = stateNode
      if (isMarkedForDeletion || claim === undefined || this.commands.has(providerID)) continue
      const hasReason = isInitialized && isConditionTrue(claim, 'DisruptionReason')
      if (hasReason || (node !== undefined && hasLeftTaint(node))) marked.push(stateNode)
    }
    return marked
  }

  get #slicing(): Slicing {
    return { ...this.#deps, sliceMs }
  }
}

/** Whether the node has the taint of a command and is not on its way out. */
const hasLeftTaint = (node: Node): boolean =>
  isDisrupted(node) && node.metadata.deletionTimestamp === undefined

/** Of the candidates, in steps, those that a method is about. */
function* acceptedBy(
  method: DisruptionMethod,
  all: readonly Candidate[],
): Generator<undefined, readonly Candidate[], undefined> {
  const accepted: Candidate[] = []
  for (const candidate of all) {
    yield
    if (method.accepts(candidate)) accepted.push(candidate)
  }
  return accepted
}
