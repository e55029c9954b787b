/** Events, metrics and logs of commands (disruption.md 18). */
import type { KubeObject, Node, NodeClaim } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import { isExpectedFailure } from '../../cloud/expected-failures.ts'
import { type Overtaken, overtakenText } from '../../provisioning/overtaken.ts'
import { type Command, decisionOf, logFields, poolsOf } from './command.ts'
import type { CommandJournal } from './command-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly events: EventRecorder
  readonly metrics: Pick<
    Metrics,
    'disruptionDecisions' | 'disruptionDecisionsByPool' | 'disruptionQueueFailures'
  >
  readonly logger: Logger
  readonly commandJournal: CommandJournal
}

export class CommandReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param successors claims in place of its nodes. */
  begun(id: string, command: Command, successors: readonly NodeClaim[]): void {
    this.#deps.commandJournal.begun(id, command, successors)
    this.#deps.logger.info('disrupting node(s)', logFields(id, command))
    this.#count(command)
  }

  overtaken(command: Command, overtaken: Overtaken): void {
    const { reason, candidates } = command
    this.#deps.commandJournal.refused(command, overtakenText(overtaken))
    this.#deps.logger.info('did not start to disrupt node(s)', {
      reason,
      Nodes: candidates.map(({ node }) => node.metadata.name),
      because: overtakenText(overtaken),
    })
  }

  /** A pause has ended the command; its nodes stay. */
  tookBack(id: string, { candidates }: Command, overtaken: Overtaken): void {
    this.#deps.logger.info('took back the disruption of node(s)', {
      'command-id': id,
      Nodes: candidates.map(({ node }) => node.metadata.name),
      because: overtakenText(overtaken),
    })
  }

  marksStay({ metadata: { name } }: Node, error: unknown): void {
    const fields = { Node: { name }, error }
    this.#deps.logger.debug('marks of a command that was not started stay until the next pass', fields)
  }

  /** @param name of a NodeClaim. */
  deletionFailed(name: string, error: unknown): void {
    const { commandJournal, logger } = this.#deps
    const fields = { NodeClaim: { name }, error }
    commandJournal.deletionFailed(name, error)
    if (isExpectedFailure(error)) logger.warn('deleting a disrupted nodeclaim failed', fields)
    else logger.error('deleting a disrupted nodeclaim failed', fields)
  }

  succeeded(id: string): void {
    this.#deps.logger.debug('command succeeded', { 'command-id': id })
  }

  /** @param late number of replacements that did not come up. */
  gaveUp(
    id: string,
    command: Command,
    { late, because }: { readonly late: number; readonly because: string },
  ): void {
    const { commandJournal, logger, metrics } = this.#deps
    commandJournal.gaveUp(id, command, because)
    const decision = decisionOf(command)
    // Karpenter has the decision in this label, too (operations.md 9.1).
    const series = { decision, reason: command.reason.toLowerCase(), consolidation_type: decision }
    metrics.disruptionQueueFailures.inc(series, late)
    logger.warn('failed to disrupt node(s)', {
      'command-id': id,
      Nodes: command.candidates.map(({ node }) => node.metadata.name),
      error: new Error(because),
    })
  }

  /** @param value distinguishes events of the same object and reason. */
  record(object: KubeObject, eventReason: string, message: string, value: string): void {
    const { uid, name } = object.metadata
    this.#deps.events.record({
      object,
      type: 'Normal',
      reason: eventReason,
      message,
      dedupe: value === '' ? [uid ?? name] : [uid ?? name, value],
    })
  }

  #count(command: Command): void {
    const { metrics } = this.#deps
    const decision = decisionOf(command)
    const series = { decision, reason: command.reason.toLowerCase(), consolidation_type: command.type }
    metrics.disruptionDecisions.inc(series)
    for (const nodepool of poolsOf(command)) metrics.disruptionDecisionsByPool.inc({ nodepool, ...series })
  }
}
