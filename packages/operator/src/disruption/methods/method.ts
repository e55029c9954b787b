/** What the ways to find nodes that may go have in common (disruption.md 2). */
import type { DisruptionReason } from '@tenon/api'
import type { StateNode } from '../../state/nodes/state-node.ts'
import type { Candidate, GroupScope } from '../candidates.ts'
import type { DisruptionClass } from '../obstacles.ts'
import type { Catalogue } from '../catalogue.ts'
import type { Command, ConsolidationType } from '../commands/command.ts'
import type { RemovalGround } from '../simulation.ts'
import type { Overtaken } from '../../provisioning/claims/overtaken.ts'

/** A state of the cluster. */
export interface Moment {
  /** Another one after every change that consolidation might depend on. */
  readonly version: number
  /** The same list as long as no instance has changed. */
  readonly instances: readonly StateNode[]
  /** Milliseconds of the monotonic clock. */
  readonly atMs: number
}

/** What a method is given to work with. */
export interface Pass {
  /** The state of the cluster before anything was read. */
  readonly since: Moment
  readonly candidates: readonly Candidate[]
  /** Every node that may be disrupted, whether or not the method accepts it. */
  readonly all: readonly Candidate[]
  readonly catalogue: Catalogue
  /**
   * What can be asked about removing candidates, nodes that are busy spared; the same for all who ask. Undefined when no
   * NodePool can launch anything.
   */
  readonly ground: () => Promise<RemovalGround | undefined>
  /** The method's candidates as they are by now. */
  readonly find: () => Promise<readonly Candidate[]>
  /** How many more nodes of each NodePool may go for the method's reason now, by its name. */
  readonly budgets: () => ReadonlyMap<string, number>
  /** Resolves when it is time to look once more at what was decided. */
  readonly delay: () => Promise<void>
  /** Whether no node of the NodePool is launched in place of others now. */
  readonly mayNotLaunch: (pool: string) => boolean
  /**
   * Marks the nodes of a command and creates its replacements.
   * @returns undefined when it was begun, or none of its nodes may go any more; else why it cannot be.
   * @throws as Commands.begin does.
   */
  readonly begin: (command: Command) => Promise<Overtaken | undefined>
}

/**
 * How a pass of a method ended: it has begun something, there was nothing to begin, or it can say or do nothing as things
 * are and is to be tried again after a back-off.
 */
export type PassOutcome = 'begun' | 'nothing' | 'again'

/** One way to find nodes that may go. */
export interface DisruptionMethod {
  readonly reason: DisruptionReason
  readonly type: ConsolidationType
  readonly disruptionClass: DisruptionClass
  /** Whether what one such method has just read serves the next one, if nothing has changed since. */
  readonly sharesReading?: boolean
  /** `together`: about nodes of which none goes without the others of its unit (gangs.md 7.5). Absent = `alone`. */
  readonly groups?: GroupScope
  /** Whether there is no use in looking at the nodes now. Absent = there may always be. */
  readonly isQuiet?: (budgets: Pass['budgets']) => boolean
  /** Of all instances, those that the method may be about, where that is known without asking each. Absent = any. */
  readonly among?: (all: readonly StateNode[]) => readonly StateNode[]
  /** Whether the method may be about this instance, told from little; nothing more is worked out for others. */
  readonly concerns: (stateNode: StateNode) => boolean
  /** Whether the method is about this node; it may tell why not. */
  readonly accepts: (candidate: Candidate) => boolean
  /** Of what it accepts, the nodes that may go; it tells why not of the others. Absent = all. */
  readonly whole?: (accepted: readonly Candidate[], catalogue: Catalogue) => readonly Candidate[]
  readonly pass: (pass: Pass, signal: AbortSignal) => Promise<PassOutcome>
}
