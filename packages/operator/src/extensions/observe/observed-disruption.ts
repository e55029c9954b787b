/** Disruption of observed nodes: each possible command is noted once, until its nodes change. */
import { labels } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { DisruptionAnswers } from '../../disruption/answers.ts'
import type { Command } from '../../disruption/commands/command.ts'
import type { CommandJournal } from '../../disruption/commands/command-journal.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'
import type { ReconcileResult } from '@tenon/kube'
import type { SingletonSpec } from '../../controller.ts'
import type { MethodTurns } from '../../disruption/controller.ts'
import type { Settings } from '../../settings.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation' | 'podsOnNodes' | 'stateNodes'>
  readonly observed: Pick<ObservedPools, 'has'>
  readonly commandJournal: CommandJournal
  readonly answers: DisruptionAnswers
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

/** A command that would have been started. */
interface Plan {
  readonly id: string
  readonly command: Command
  /** UIDs of the pods on each node, by provider ID. */
  readonly pods: ReadonlyMap<string, string>
}

/** How long a node is left alone after a decision about it. */
const againMs = 10 * 60_000

export class ObservedMoves {
  readonly #deps: Dependencies
  readonly #plans = new Map<string, Plan>()
  /** Plans of nodes, by provider ID. */
  readonly #planned = new Map<string, string>()
  /** Unix milliseconds, by provider ID. */
  readonly #decidedUntilMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether the node is a candidate. */
  mayTake(stateNode: StateNode): boolean {
    const { clock, observed } = this.#deps
    if (!observed.has(labelsOf(stateNode)[labels.nodePool] ?? '')) return false
    const { providerID } = stateNode
    return !this.#planned.has(providerID) && (this.#decidedUntilMs.get(providerID) ?? 0) <= clock.now()
  }

  /** Notes the command in place of starting it. */
  note(command: Command): Overtaken {
    const { answers, clock, commandJournal, logger } = this.#deps
    for (const replacement of command.replacements) replacement.abandon?.()
    const id = commandJournal.observed(command)
    const { candidates, reason } = command
    this.#plans.set(id, {
      id,
      command,
      pods: new Map(candidates.map((each) => [each.providerID, uidsOf(each.pods)])),
    })
    const into = command.replacements.length === 0 ? 'removed' : 'replaced'
    const message = `It would be ${into} (${reason}), but is only observed`
    for (const { name, providerID } of candidates) {
      this.#planned.set(providerID, id)
      this.#decidedUntilMs.set(providerID, clock.now() + againMs)
      answers.keep(name, { cause: 'possible', message, atMs: clock.now() })
    }
    logger.info('observed: node(s) would be disrupted', {
      decision: id,
      reason,
      Nodes: candidates.map(({ name }) => name),
      replacements: command.replacements.length,
    })
    return { kind: 'observed' }
  }

  /** Ends plans whose nodes have changed, are gone, or are no longer observed. */
  settle(): void {
    if (this.#plans.size === 0 && this.#decidedUntilMs.size === 0) return
    const nodes = new Map(this.#deps.state.stateNodes().map((each) => [each.providerID, each]))
    for (const plan of this.#plans.values()) {
      const because = this.#endOf(plan, nodes)
      if (because !== undefined) this.#end(plan, because)
    }
    for (const providerID of this.#decidedUntilMs.keys())
      if (!nodes.has(providerID)) this.#decidedUntilMs.delete(providerID)
  }

  #endOf({ command, pods }: Plan, nodes: ReadonlyMap<string, StateNode>): string | undefined {
    const { observed, state } = this.#deps
    for (const { providerID, name, pool } of command.candidates) {
      const node = nodes.get(providerID)
      if (node?.node === undefined || node.isMarkedForDeletion) return `node ${name} is gone or going`
      if (!observed.has(pool.metadata.name))
        return `NodePool ${pool.metadata.name} is no longer only observed`
      if (uidsOf(state.podsOnNodes.of(node.node.metadata.name).pods) !== pods.get(providerID))
        return `other pods run on node ${name}`
    }
    return undefined
  }

  #end({ id, command }: Plan, because: string): void {
    const { commandJournal, state } = this.#deps
    this.#plans.delete(id)
    for (const { providerID } of command.candidates) this.#planned.delete(providerID)
    commandJournal.observedEnd(id, command, because)
    // The nodes are candidates again, so a search may find something.
    state.consolidation.bump()
  }
}

function uidsOf(pods: readonly { readonly metadata: { readonly uid?: string } }[]): string {
  return pods
    .map(({ metadata }) => metadata.uid ?? '')
    .toSorted()
    .join()
}

/** `disruption.observed`: searches for moves of observed nodes, one method after the other. */
export function observedDisruption(
  moves: ObservedMoves,
  turns: MethodTurns,
  observed: Pick<ObservedPools, 'isAny'>,
  state: Pick<ClusterState, 'decidable'>,
  { disruptionPollMs }: Pick<Settings, 'disruptionPollMs'>,
): SingletonSpec {
  const next: ReconcileResult = { kind: 'after', delayMs: disruptionPollMs }
  return {
    name: 'disruption.observed',
    async run(signal) {
      moves.settle()
      if (!observed.isAny || !state.decidable()) return next
      await turns.prepare()
      // Each method reads its candidates anew: a move just noted takes its nodes.
      for (const method of turns.methods) await turns.take(method, {}, signal)
      return next
    },
  }
}
