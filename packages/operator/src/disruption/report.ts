/** Events and metrics of disruption decisions (disruption.md 10, 12, 18). */
import type { Clock, Logger } from '@tenon/runtime'
import type { KubeObject } from '@tenon/api'
import type { ConsolidationFinding, RemovalResult, Verdict } from '@tenon/engine'
import { balancedThreshold } from '@tenon/engine/consolidation'
import type { DisruptionAnswers } from './answers.ts'
import { type Candidate, reportBlocked } from './candidates.ts'
import { type ClaimOf, refusalText, sentence, strandedText } from './refusals.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { StateNode } from '../state/nodes/state-node.ts'
import type { Kubernetes } from '../kubernetes.ts'
import type { CommandReason } from './commands/command.ts'
import type { Metrics } from '../metrics/metrics.ts'

interface Dependencies {
  readonly kubernetes: Pick<Kubernetes<'nodePools'>, 'caches' | 'events'>
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly answers: DisruptionAnswers
  readonly metrics: Pick<
    Metrics,
    'consolidationMoves' | 'consolidationScore' | 'consolidationTimeouts' | 'failedValidations'
  >
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

/** An Unconsolidatable event with the same reason is not repeated within this time. */
export const unconsolidatableMs = 15 * 60_000
/** The `k` of the event: savings must reach 1/k of the disruption (disruption.md 1). */
const balancedFactor = 2

interface CommandSummary {
  readonly replacements: number
  /** Per hour. */
  readonly savings: number
}

/** Records why nodes stay: as events, in metrics, and for later questions. */
export class DisruptionReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Records on the Node and its claim why they are not consolidated. */
  unconsolidatable({ node, claim }: Candidate, reason: string): void {
    this.#record([node, claim], {
      reason: 'Unconsolidatable',
      message: sentence(reason),
      values: [],
      dedupeTtlMs: unconsolidatableMs,
    })
  }

  /** Records on the Node and its claim why they stay. */
  blocked(stateNode: StateNode, reason: string): void {
    reportBlocked(this.#deps.kubernetes.events, stateNode, reason)
  }

  /** Records that the pods of a drifted node fit nowhere else. */
  stranded(candidate: Candidate, failures: RemovalResult['stranded']): void {
    this.stays(candidate, strandedText(failures, this.#claimNames()))
  }

  /** Records why a drifted node stays. */
  stays(candidate: Candidate, reason: string): void {
    const { answers, clock } = this.#deps
    this.blocked(candidate, reason)
    answers.keep(candidate.name, { cause: 'pods', message: sentence(reason), atMs: clock.now() })
  }

  /** Logs that no NodePool can launch, so that the method cannot decide. */
  noPools(reason: CommandReason): void {
    this.#deps.logger.info('no nodepool is ready to launch nodes, so replacements cannot be evaluated', {
      reason,
    })
  }

  /** Counts a search that ran out of time. */
  timedOut(type: string): void {
    this.#deps.metrics.consolidationTimeouts.inc({ consolidation_type: type })
  }

  /** Records the verdicts of a search on single nodes. */
  found(findings: readonly ConsolidationFinding[], candidates: ReadonlyMap<string, Candidate>): void {
    const { answers, clock } = this.#deps
    const claimOf = this.#claimNames()
    for (const finding of findings) {
      if (finding.kind === 'refused') {
        const candidate = candidates.get(finding.node)
        if (candidate !== undefined) this.unconsolidatable(candidate, refusalText(finding.refusal, claimOf))
        continue
      }
      const nodes = finding.nodes.flatMap((name) => candidates.get(name) ?? [])
      if (finding.kind === 'possible') {
        if (finding.replacements > 0) this.#recordMove('ConsolidationCandidate', nodes, finding)
      } else this.#recordScores(nodes, finding)
    }
    answers.keepFindings(findings, claimOf, clock.now())
  }

  /**
   * Records on every node of a move why it was rejected after the decision.
   * @param type label of metric `karpenter_voluntary_disruption_failed_validations_total`, if it counts there.
   */
  rejected(nodes: readonly Candidate[], command: CommandSummary, because: string, type?: string): void {
    this.#recordMove('ConsolidationRejected', nodes, command, because)
    if (type !== undefined) this.unvalidated(type, nodes.length)
  }

  /** Counts nodes whose decision was rejected. */
  unvalidated(type: string, nodes: number): void {
    this.#deps.metrics.failedValidations.inc({ consolidation_type: type }, nodes)
  }

  #recordMove(
    reason: string,
    nodes: readonly Candidate[],
    { replacements, savings }: CommandSummary,
    because?: string,
  ): void {
    for (const { node, claim } of nodes) {
      const into = replacements === 0 ? '' : ` -> [${replacements} replacement${replacements > 1 ? 's' : ''}]`
      const part = nodes.length > 1 ? `, part of ${nodes.length}` : ''
      const command = `${replacements === 0 ? 'delete' : 'replace'}: [${node.metadata.name}${part}]${into}`
      this.#record([node, claim], {
        reason,
        message:
          `${command} (savings: $${savings.toFixed(2)})` +
          (because === undefined ? '' : `, rejected: ${because}`),
        values: because === undefined ? [command] : [command, because],
      })
    }
  }

  #recordScores(
    nodes: readonly Candidate[],
    { verdicts, isApproved, nodes: names }: Extract<ConsolidationFinding, { kind: 'scored' }>,
  ): void {
    const { metrics, kubernetes, logger } = this.#deps
    for (const verdict of verdicts) {
      const { nodePool: nodepool, policy, score } = verdict
      const decided = (approved: boolean) => (approved ? 'approved' : 'rejected')
      metrics.consolidationMoves.inc({ decision: decided(isApproved), nodepool, policy })
      if (policy === 'Balanced')
        metrics.consolidationScore.observe({ decision: decided(verdict.isApproved), nodepool, policy }, score)
      logger.debug('scored a consolidation move', {
        ...verdict,
        threshold: balancedThreshold,
        candidates: names,
      })
      if (policy !== 'Balanced' || !verdict.isApproved) continue
      const pool = kubernetes.caches.nodePools.get({ name: nodepool })
      const [only] = nodes
      const objects: readonly (KubeObject | undefined)[] =
        names.length === 1 ? [only?.node, only?.claim] : [pool]
      this.#record(
        objects.filter((object) => object !== undefined),
        { reason: 'ConsolidationApproved', message: scoreText(verdict), values: [] },
      )
    }
  }

  #record(
    objects: readonly KubeObject[],
    event: {
      readonly reason: string
      readonly message: string
      readonly values: readonly string[]
      readonly dedupeTtlMs?: number
    },
  ): void {
    const { reason, message, values, dedupeTtlMs } = event
    for (const object of objects)
      this.#deps.kubernetes.events.record({
        object,
        type: 'Normal',
        reason,
        message,
        dedupe: [object.metadata.uid ?? object.metadata.name, ...values],
        ...(dedupeTtlMs !== undefined && { dedupeTtlMs }),
      })
  }

  /** Looks up claims of instances; indexes all at the first question. */
  #claimNames(): ClaimOf {
    let names: ReadonlyMap<string, string | undefined> | undefined
    return (instance) => {
      names ??= new Map(this.#deps.state.stateNodes().map(({ name, claim }) => [name, claim?.metadata.name]))
      return names.get(instance)
    }
  }
}

function scoreText({ score, savingsFraction, disruptionFraction }: Verdict): string {
  const percent = (fraction: number) => `${(100 * fraction).toFixed(1)}%`
  return (
    `Score ${score.toFixed(2)} reaches the threshold ${balancedThreshold.toFixed(2)} (k=${balancedFactor}): ` +
    `saves ${percent(savingsFraction)} of the NodePool's price for ${percent(disruptionFraction)} of its disruption cost`
  )
}
