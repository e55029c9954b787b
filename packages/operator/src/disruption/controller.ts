/** `disruption`: looks for nodes to remove or replace, one method after the other (disruption.md 2). */
import { isKubeError, type ReconcileResult } from '@tenon/kube'
import type { SingletonSpec } from '../controller.ts'
import type { DisruptionBudgets } from './budget.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PassAges } from '../metrics/waiting.ts'
import type { Settings } from '../settings.ts'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { StateNode } from '../state/nodes/state-node.ts'
import type { Candidate, CandidateFinder } from './candidates.ts'
import type { Unavailability } from '@tenon/api'
import type { Overtaken } from '../provisioning/overtaken.ts'
import type { Command } from './commands/command.ts'
import type { DisruptionMethod, Moment, Pass, PassOutcome } from './methods/method.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { CatalogueReader } from './catalogue.ts'
import type { PreparedRemoval, RemovalSimulation } from './simulation.ts'

/** Work that an earlier pass, or an earlier process, did not finish. */
interface Leftover {
  settle(signal: AbortSignal): Promise<void>
}

/** What time alone changes for decisions. */
interface Timetable {
  /** When the next change is, in Unix milliseconds; undefined if none is known. */
  nextChangeMs(nowMs: number): number | undefined
}

interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation' | 'decidable' | 'waitingFor'>
  readonly passAges: PassAges
  readonly budgets: Pick<DisruptionBudgets, 'logUnreadable'>
  /** Finished in this order before anything is decided. */
  readonly leftovers: readonly Leftover[]
  readonly turns: MethodTurns
  /** The next pass is no later than the next change. */
  readonly timetables: readonly Timetable[]
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'disruptionPollMs'>
}

const unsyncedMs = 1000

/** Runs the methods in order and begins the commands of the first that finds some; the next pass starts over. */
export class Disruption implements SingletonSpec {
  readonly name = 'disruption'
  readonly #deps: Dependencies
  /** The first change after the begin of the last pass; Unix milliseconds. */
  #changesMs = Infinity

  constructor(deps: Dependencies) {
    this.#deps = deps
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
    const { budgets, leftovers, state, turns } = this.#deps
    budgets.logUnreadable()
    if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    this.#lookAhead()
    for (const leftover of leftovers) await leftover.settle(signal)
    await turns.prepare()
    const round: Round = {}
    const failures: unknown[] = []
    let isAgain = false
    for (const method of turns.methods) {
      try {
        const outcome = await turns.take(method, round, signal)
        if (outcome === 'begun') return { kind: 'after', delayMs: 0 }
        isAgain ||= outcome === 'again'
      } catch (error) {
        if (signal.aborted || isKubeError(error, 'conflict')) throw error
        // One method that fails does not keep the others from their turn.
        failures.push(error)
      }
      // A method may take minutes.
      if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    }
    if (failures.length > 0) throw failures[0]
    return isAgain ? { kind: 'backoff' } : { kind: 'after', delayMs: this.#pauseMs() }
  }

  #lookAhead(): void {
    const { clock, state, timetables } = this.#deps
    const nowMs = clock.now()
    // Searches that found nothing before the change are repeated.
    if (nowMs >= this.#changesMs) state.consolidation.bump()
    this.#changesMs = Math.min(...timetables.map((each) => each.nextChangeMs(nowMs) ?? Infinity))
  }

  #pauseMs(): number {
    const { clock, settings } = this.#deps
    return Math.min(settings.disruptionPollMs, Math.max(0, this.#changesMs - clock.now()))
  }
}

/** A method, and where its candidates come from. */
export interface MethodTurn {
  readonly method: DisruptionMethod
  readonly sources: MethodSources
}

/** Who carries out commands: the queue, or the journal where NodePools are only observed. */
export interface Orders {
  /** Whether a command may be about the instance now. */
  mayTake(stateNode: StateNode): boolean
  /** Why no replacement of this NodePool is launched now; undefined if one may be. */
  whyNoLaunch(pool: string): Unavailability | undefined
  /** @returns why the command was not begun, as the cluster has changed; undefined if it was. */
  begin(command: Command, signal: AbortSignal): Promise<Overtaken | undefined>
}

interface MethodTurnsParts {
  readonly state: Pick<ClusterState, 'consolidation' | 'podsOnNodes' | 'stateNodes'>
  readonly orders: Orders
  readonly metrics: Pick<Metrics, 'disruptionEligibleNodes' | 'disruptionEvaluation'>
  readonly slicing: Slicing & { readonly clock: Clock }
  readonly settings: Pick<Settings, 'validationDelayMs'>
  /** In the order of their turns. */
  readonly methods: readonly MethodTurn[]
}

/** What the methods of one pass share. */
interface Round {
  /** What the method before has read, and when. */
  last?: {
    readonly by: DisruptionMethod
    readonly since: Moment
    readonly seen: Seen
  }
}

/** Instances examined between two yields to the event loop. */
const nodesPerStep = 64
/** How long the next search may use what one has read. */
const seenLastsMs = 1000
/** How long moves may be validated with the same candidates: a pod may become protected at any moment. */
const foundLastsMs = 100

export class MethodTurns {
  readonly #deps: MethodTurnsParts

  constructor(deps: MethodTurnsParts) {
    this.#deps = deps
  }

  get methods(): readonly MethodTurn[] {
    return this.#deps.methods
  }

  /** Reads the pods of all nodes in steps; methods ask for them all at once. */
  prepare(): Promise<void> {
    const { slicing, state } = this.#deps
    return inSlices(state.podsOnNodes.reading(state.stateNodes()), slicing)
  }

  async take({ method, sources }: MethodTurn, round: Round, signal: AbortSignal): Promise<PassOutcome> {
    const { metrics, orders, settings, slicing } = this.#deps
    const { clock } = slicing
    const { reason, type } = method
    const series = { reason: reason.toLowerCase(), consolidation_type: type }
    const start = clock.monotonic()
    const isWanted = (stateNode: StateNode) => method.concerns(stateNode) && orders.mayTake(stateNode)
    const budgets = () =>
      reason === 'Unhealthy' ? new Map<string, number>() : sources.budgets.remaining(reason)
    if (method.isQuiet?.(budgets) === true) return 'nothing'
    if (!(await inSlices(this.#isAnyOf(method, isWanted), slicing))) {
      metrics.disruptionEligibleNodes.set({ reason: reason.toLowerCase() }, 0)
      metrics.disruptionEvaluation.observe(series, (clock.monotonic() - start) / 1000)
      return 'nothing'
    }
    const read = () => readFor(method, sources, isWanted, signal)
    try {
      let last = this.#seenFor(method, round)
      if (last === undefined) {
        const since = this.#moment()
        last = { by: method, since, seen: await read() }
        round.last = last
      }
      const { seen, since } = last
      if (seen.candidates.length === 0) return 'nothing'
      let latest = last
      const find = async (): Promise<readonly Candidate[]> => {
        if (!this.#isFresh(latest.since, foundLastsMs)) {
          const now = this.#moment()
          latest = { ...latest, since: now, seen: await read() }
        }
        return latest.seen.candidates
      }
      return await method.pass(
        {
          ...seen,
          since,
          find,
          budgets,
          delay: () => clock.sleep(settings.validationDelayMs, signal),
          mayNotLaunch: (pool) => orders.whyNoLaunch(pool) !== undefined,
          begin: (command) => orders.begin(command, signal),
        },
        signal,
      )
    } finally {
      metrics.disruptionEvaluation.observe(series, (clock.monotonic() - start) / 1000)
    }
  }

  /** What the method before has just read, if both may share it and nothing has changed since. */
  #seenFor(method: DisruptionMethod, { last }: Round): Round['last'] {
    if (last === undefined || last.by.sharesReading !== true || method.sharesReading !== true)
      return undefined
    return last.by.groups === method.groups && this.#isFresh(last.since, seenLastsMs) ? last : undefined
  }

  #moment(): Moment {
    const { slicing, state } = this.#deps
    return {
      version: state.consolidation.read(),
      instances: state.stateNodes(),
      atMs: slicing.clock.monotonic(),
    }
  }

  #isFresh(then: Moment, lastsMs: number): boolean {
    const { atMs, instances, version } = this.#moment()
    return version === then.version && instances === then.instances && atMs - then.atMs < lastsMs
  }

  *#isAnyOf(
    method: DisruptionMethod,
    isWanted: (instance: StateNode) => boolean,
  ): Generator<undefined, boolean, undefined> {
    const all = this.#deps.state.stateNodes()
    for (const [index, stateNode] of (method.among?.(all) ?? all).entries()) {
      if (index % nodesPerStep === 0) yield
      if (isWanted(stateNode)) return true
    }
    return false
  }
}

/** What the candidates of a method are read from; consolidation sees a catalogue without what may not be launched now. */
interface MethodSources {
  readonly catalogue: CatalogueReader
  readonly candidates: CandidateFinder
  readonly budgets: DisruptionBudgets
  readonly simulation: RemovalSimulation
  readonly metrics: Pick<Metrics, 'disruptionEligibleNodes'>
  readonly slicing: Slicing
}

/** The part of a pass that is read from the cluster. */
type Seen = Pick<Pass, 'candidates' | 'all' | 'catalogue' | 'prepared'>

/** @param isWanted whether an instance is examined at all. */
async function readFor(
  method: DisruptionMethod,
  { candidates: finder, catalogue: types, metrics, simulation, slicing }: MethodSources,
  isWanted: (stateNode: StateNode) => boolean,
  signal: AbortSignal,
): Promise<Seen> {
  const { disruptionClass, groups } = method
  const among = (instances: readonly StateNode[]) => method.among?.(instances) ?? instances
  const scope = { disruptionClass, among, ...(groups && { groups }) }
  const catalogue = await types.read(signal)
  const all = await inSlices(finder.find(catalogue, scope, isWanted), slicing)
  const accepted = await inSlices(acceptedBy(method, all), slicing)
  const candidates = method.whole?.(accepted, catalogue) ?? accepted
  metrics.disruptionEligibleNodes.set({ reason: method.reason.toLowerCase() }, candidates.length)
  let prepared: Promise<PreparedRemoval | undefined> | undefined
  return {
    catalogue,
    all,
    candidates,
    prepared: () => (prepared ??= simulation.prepare(candidates, true, signal)),
  }
}

/** Candidates examined between two yields to the event loop. */
const candidatesPerStep = 16

function* acceptedBy(
  method: DisruptionMethod,
  all: readonly Candidate[],
): Generator<undefined, readonly Candidate[], undefined> {
  const accepted: Candidate[] = []
  for (const [at, candidate] of all.entries()) {
    if (at % candidatesPerStep === 0) yield
    if (method.accepts(candidate)) accepted.push(candidate)
  }
  return accepted
}
