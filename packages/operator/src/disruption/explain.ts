/** Explains for every node why it is still there (`GET /debug/decisions`). */
import type { EventRecorder } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { type DisruptionReason, isConditionTrue, labels, type NodePool } from '@tenon/api'
import type { ConsolidationRemark, NodeRefusal } from '@tenon/engine'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { labelsOf, type StateNode } from '../cluster/nodes/state-node.ts'
import type { DisruptionAnswers, NodeDecision, Verdict } from './answers.ts'
import { budgetState } from './budget.ts'
import { type Candidate, candidateOf, isEmpty } from './candidates.ts'
import { type Catalogue, readCatalogue } from './catalogue.ts'
import type { Commands } from './commands/commands.ts'
import { policyAgainst, restOf } from './policy.ts'
import { claimNames, refusalText } from './remarks.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly answers: DisruptionAnswers
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: Settings
}

type CommandsUnderWay = Pick<Commands, 'has' | 'isBackingOff'>
type BudgetText = (pool: NodePool, reason: DisruptionReason) => string | undefined

const unknown: Verdict = {
  cause: 'unknown',
  message: 'Nobody has looked for another place for its pods yet',
}

/** Notes what a search for consolidation said of single nodes. */
export function keepRemarks(deps: Dependencies, remarks: readonly ConsolidationRemark[]): void {
  const { answers, clock } = deps
  const claimOf = claimNames(deps)
  const atMs = clock.now()
  for (const remark of remarks) {
    if (remark.kind === 'refused') {
      const message = sentence(refusalText(remark.refusal, claimOf))
      answers.keep(remark.node, { cause: causeOf(remark.refusal), message, atMs })
    } else if (remark.kind === 'scored' && !remark.isApproved) {
      const message = 'What it would save is not worth the disruption (consolidationPolicy=Balanced)'
      for (const node of remark.nodes) answers.keep(node, { cause: 'score', message, atMs })
    }
  }
}

/** Notes that the pods of a drifted node have no other place. */
export function keepStranded({ answers, clock }: Dependencies, node: string, text: string): void {
  answers.keep(node, { cause: 'pods', message: sentence(text), atMs: clock.now() })
}

/** Answers for every node with a claim, as things are now; only verdicts of searches may be older. */
export async function explainNodes(
  deps: Dependencies,
  commands: CommandsUnderWay,
  signal: AbortSignal,
): Promise<readonly NodeDecision[]> {
  const { answers, clock, state } = deps
  const catalogue = await readCatalogue(deps, signal)
  const budgetText = budgetTexts(deps)
  const now = clock.now()
  const stateNodes = state.stateNodes()
  answers.retain(new Set(stateNodes.map(({ name }) => name)))
  return stateNodes.flatMap((stateNode): readonly NodeDecision[] => {
    const { claim, node } = stateNode
    if (claim === undefined) return []
    const {
      cause,
      message,
      atMs = now,
    } = verdictOfCommands(stateNode, commands) ?? verdictOn(deps, stateNode, catalogue, budgetText)
    return [
      {
        ...(node !== undefined && { node: node.metadata.name }),
        nodeClaim: claim.metadata.name,
        nodePool: labelsOf(stateNode)[labels.nodePool] ?? '',
        cause,
        message,
        at: rfc3339(atMs),
      },
    ]
  })
}

function verdictOfCommands({ providerID }: StateNode, commands: CommandsUnderWay): Verdict | undefined {
  if (commands.has(providerID))
    return { cause: 'command', message: 'It is being disrupted, as soon as what replaces it is ready' }
  return commands.isBackingOff(providerID)
    ? { cause: 'failedCommand', message: 'Commands for it came to nothing; it is tried again later' }
    : undefined
}

function verdictOn(
  deps: Dependencies,
  stateNode: StateNode,
  catalogue: Catalogue,
  budgetText: BudgetText,
): Verdict {
  const found = candidateOf(deps, stateNode, catalogue, 'graceful')
  if (found === undefined) return unknown
  return 'by' in found
    ? { cause: found.by, message: sentence(found.text) }
    : verdictOnCandidate(deps, found, budgetText)
}

function verdictOnCandidate(deps: Dependencies, candidate: Candidate, budgetText: BudgetText): Verdict {
  const { answers } = deps
  const { claim, pool, name } = candidate
  const isDrifted = isConditionTrue(claim, 'Drifted')
  const reason: DisruptionReason = isDrifted ? 'Drifted' : isEmpty(candidate) ? 'Empty' : 'Underutilized'
  const against = isDrifted ? undefined : policyAgainst(deps, candidate)
  if (against !== undefined) return { cause: 'policy', message: sentence(against) }
  const budget = budgetText(pool, reason)
  if (budget !== undefined) return { cause: 'budget', message: budget }
  if (reason === 'Empty') return { cause: 'possible', message: `It may go (reason=${reason})` }
  const rest = isDrifted ? undefined : restOf(deps, candidate)
  if (rest !== undefined) return { cause: 'failedCommand', message: sentence(rest) }
  return (
    answers.verdictOn(name) ??
    (isDrifted ? { cause: 'possible', message: `It may go (reason=${reason})` } : unknown)
  )
}

/** Says where a budget is used up; each is looked up once. */
function budgetTexts(deps: Dependencies): BudgetText {
  const known = new Map<string, string | undefined>()
  return (pool, reason) => {
    const { name } = pool.metadata
    const key = `${name}/${reason}`
    if (!known.has(key)) {
      const { allowed, disrupting } = budgetState(deps, pool, reason)
      const details = `NodePool=${name}, allowed=${allowed}, disrupted=${disrupting}`
      known.set(key, allowed > disrupting ? undefined : `No budget is left for reason ${reason} (${details})`)
    }
    return known.get(key)
  }
}

function causeOf({ kind }: NodeRefusal): NodeDecision['cause'] {
  if (kind === 'undecided') return 'unknown'
  if (kind === 'busyNodes') return 'policy'
  return kind === 'stranded' || kind === 'severalNodes' ? 'pods' : 'price'
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
