/** Gives each disruption method its turn (disruption.md 2). */
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { StateNode } from '../state/nodes/state-node.ts'
import type { Candidate } from './candidates.ts'
import type { Unavailability } from '@tenon/api'
import type { Overtaken } from '../provisioning/claims/overtaken.ts'
import type { Command } from './commands/command.ts'
import { Consolidation } from './methods/consolidation.ts'
import type { DisruptionMethod, Moment, PassOutcome } from './methods/method.ts'
import type { PassReader, Seen } from './pass-reader.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'

/** A method, and what reads for it. */
export interface MethodTurn {
  readonly method: DisruptionMethod
  readonly reader: PassReader
}

/** What becomes of decisions. */
export interface Orders {
  /** Whether decisions may be about the instance now. */
  mayTake(stateNode: StateNode): boolean
  /** As Commands.whyNoLaunch. */
  whyNoLaunch(pool: string): Unavailability | undefined
  /** As Commands.begin. */
  begin(command: Command, signal: AbortSignal): Promise<Overtaken | undefined>
}

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation' | 'podsOnNodes' | 'stateNodes'>
  readonly orders: Orders
  readonly metrics: Pick<Metrics, 'disruptionEligibleNodes' | 'disruptionEvaluation'>
  readonly slicing: Slicing & { readonly clock: Clock }
  readonly settings: Pick<Settings, 'validationDelayMs'>
  /** In the order of their turns. */
  readonly methods: readonly MethodTurn[]
}

/** What the methods of one pass have from each other. */
export interface Round {
  /** What the method before has read, and of which state of the cluster. */
  last?: {
    readonly by: DisruptionMethod
    readonly since: Moment
    readonly seen: Seen
  }
}

/** Instances looked at between two questions whether others are to run. */
const nodesPerStep = 64
/** What one search has read is good for the next for so long. */
const seenLastsMs = 1000
/** Several moves are looked at once more with what was read so lately: pods may be protected at any moment. */
const foundLastsMs = 100

export class MethodTurns {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** In their order. */
  get methods(): readonly MethodTurn[] {
    return this.#deps.methods
  }

  /** Reads what the methods ask for at a stretch, in steps. */
  prepare(): Promise<void> {
    const { slicing, state } = this.#deps
    return inSlices(state.podsOnNodes.reading(state.stateNodes()), slicing)
  }

  async take({ method, reader }: MethodTurn, round: Round, signal: AbortSignal): Promise<PassOutcome> {
    const { metrics, orders, settings, slicing } = this.#deps
    const { clock } = slicing
    const { reason, type } = method
    const series = { reason: reason.toLowerCase(), consolidation_type: type }
    const start = clock.monotonic()
    const isWanted = (stateNode: StateNode) => method.concerns(stateNode) && orders.mayTake(stateNode)
    const budgets = () => reader.budgetsOf(method)
    if (method.isQuiet?.(budgets) === true) return 'nothing'
    if (!(await inSlices(this.#isAnyOf(method, isWanted), slicing))) {
      metrics.disruptionEligibleNodes.set({ reason: reason.toLowerCase() }, 0)
      metrics.disruptionEvaluation.observe(series, (clock.monotonic() - start) / 1000)
      return 'nothing'
    }
    const read = () => reader.read(method, isWanted, signal)
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

  /** What another search for consolidation has just read, if nothing has changed since. */
  #seenFor(method: DisruptionMethod, { last }: Round): Round['last'] {
    if (last === undefined || !(last.by instanceof Consolidation) || !(method instanceof Consolidation))
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

  /** Whether what was read then is good still. */
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
