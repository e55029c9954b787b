/** The interface of disruption methods, and what a pass gives them (disruption.md 2). */
import type { StateNode } from '../../state/nodes/state-node.ts'
import type { Candidate, GroupScope } from '../candidates.ts'
import type { DisruptionClass } from '../obstacles.ts'
import type { Catalogue } from '../catalogue.ts'
import type { Command, CommandReason, ConsolidationType } from '../commands/command.ts'
import type { PreparedRemoval } from '../simulation.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'

/** The state of the cluster at a time. */
export interface Moment {
  /** Changes with everything that consolidation may depend on. */
  readonly version: number
  /** The same list as long as no instance has changed. */
  readonly instances: readonly StateNode[]
  /** Milliseconds of the monotonic clock. */
  readonly atMs: number
}

/** One pass, as a method sees it. */
export interface Pass {
  /** The state of the cluster before anything was read. */
  readonly since: Moment
  readonly candidates: readonly Candidate[]
  /** Every node that may be disrupted, whether or not the method accepts it. */
  readonly all: readonly Candidate[]
  readonly catalogue: Catalogue
  /**
   * The input for questions about removing candidates, in which busy nodes receive no pods; shared by all questions.
   * Undefined if no NodePool can launch anything.
   */
  readonly prepared: () => Promise<PreparedRemoval | undefined>
  /** The method's candidates, read again. */
  readonly find: () => Promise<readonly Candidate[]>
  /** How many more nodes of each NodePool may be disrupted for the method's reason now, by its name. */
  readonly budgets: () => ReadonlyMap<string, number>
  /** Resolves when it is time to validate a decision. */
  readonly delay: () => Promise<void>
  /** Whether no replacement of the NodePool may be launched now. */
  readonly mayNotLaunch: (pool: string) => boolean
  /**
   * Taints the nodes of a command and creates its replacements.
   * @returns undefined if it was begun, or if none of its nodes may go any more; else what has changed.
   * @throws KubeError.
   */
  readonly begin: (command: Command) => Promise<Overtaken | undefined>
}

/**
 * How a pass of a method ended: it began a command, there was nothing to do, or it could not decide and is repeated after a
 * backoff.
 */
export type PassOutcome = 'begun' | 'nothing' | 'again'

/** One way to find nodes to remove or replace. */
export interface DisruptionMethod {
  readonly reason: CommandReason
  /** Label `consolidation_type` of metrics; empty for drift. */
  readonly type: ConsolidationType
  readonly disruptionClass: DisruptionClass
  /** Whether it may use what the method before has just read, if nothing has changed since. */
  readonly sharesReading?: boolean
  /** `together`: only about nodes that go together with others (gangs.md 7.5). Default: `alone`. */
  readonly groups?: GroupScope
  /** Whether the pass can be skipped without examining nodes. Default: never. */
  readonly isQuiet?: (budgets: Pass['budgets']) => boolean
  /** The instances that the method may concern, if that is known without examining each. Default: all. */
  readonly among?: (all: readonly StateNode[]) => readonly StateNode[]
  /** A cheap test whether the method may concern this instance; others do not become candidates. */
  readonly concerns: (stateNode: StateNode) => boolean
  /** Whether the method concerns this candidate; it may record an event why not. */
  readonly accepts: (candidate: Candidate) => boolean
  /** The accepted candidates that may go; events say why others may not. Default: all. */
  readonly whole?: (accepted: readonly Candidate[], catalogue: Catalogue) => readonly Candidate[]
  readonly pass: (pass: Pass, signal: AbortSignal) => Promise<PassOutcome>
}
