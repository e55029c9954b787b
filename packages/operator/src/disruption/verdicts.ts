/** Why a node is not disrupted now, from its state and from the last searches. */
import { type DisruptionReason, isConditionTrue, type NodePool } from '@tenon/api'
import { pauseSentence } from '../state/pause.ts'
import { rfc3339 } from '@tenon/runtime'
import type { StateNode } from '../state/nodes/state-node.ts'
import type { DisruptionAnswers, NodeObstacle, Verdict } from './answers.ts'
import { type DisruptionBudgets, rolloutText } from './budget.ts'
import { type Candidate, type CandidateFinder, isEmpty } from './candidates.ts'
import type { Catalogue } from './catalogue.ts'
import type { ConsolidationPolicy, Objection } from './policy.ts'
import { sentence } from './refusals.ts'

interface Dependencies {
  readonly candidates: CandidateFinder
  readonly budgets: DisruptionBudgets
  readonly policy: ConsolidationPolicy
  readonly answers: Pick<DisruptionAnswers, 'verdictOn'>
}

/** The first obstacle of a node, and those behind it. */
export interface FullVerdict extends Verdict {
  readonly others?: readonly NodeObstacle[]
}

type BudgetObstacles = (pool: NodePool, reason: DisruptionReason) => readonly NodeObstacle[]

const unknown: Verdict = {
  cause: 'unknown',
  message: 'The placement of its pods elsewhere has not been evaluated yet',
}

export class NodeVerdicts {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Verdicts on nodes for the current state; each budget is looked up once. */
  now(catalogue: Catalogue): (stateNode: StateNode) => FullVerdict {
    const { budgets, candidates } = this.#deps
    const obstaclesOf = budgetObstacles(budgets)
    return (stateNode) => {
      const candidate = candidates.described(stateNode, catalogue)
      const found: Verdict[] = []
      for (const { by, text, untilMs } of candidates.obstacles(stateNode, catalogue))
        found.push({ cause: by, message: sentence(text), ...endOf(untilMs) })
      if (candidate !== undefined) found.push(...this.#against(candidate, obstaclesOf))
      const [first, ...others] = found
      if (first !== undefined)
        return others.length === 0 ? first : { ...first, others: others.map(withoutTime) }
      return candidate === undefined ? unknown : unopposed(candidate)
    }
  }

  /** Objections of its NodePool and of searches, in order. */
  *#against(candidate: Candidate, obstaclesOf: BudgetObstacles): Generator<Verdict, undefined, undefined> {
    const { answers, policy } = this.#deps
    const reason = reasonFor(candidate)
    const isDrifted = reason === 'Drifted'
    if (!isDrifted) for (const objection of policy.against(candidate)) yield obstacleOf('policy', objection)
    yield* obstaclesOf(candidate.pool, reason)
    if (reason === 'Empty') return
    const rest = isDrifted ? undefined : policy.restOf(candidate)
    if (rest !== undefined) yield obstacleOf('failedCommand', rest)
    const found = answers.verdictOn(candidate.name)
    if (found !== undefined) yield found
  }
}

export function reasonFor(candidate: Candidate): DisruptionReason {
  if (isConditionTrue(candidate.claim, 'Drifted')) return 'Drifted'
  return isEmpty(candidate) ? 'Empty' : 'Underutilized'
}

function unopposed(candidate: Candidate): Verdict {
  const reason = reasonFor(candidate)
  return reason === 'Underutilized'
    ? unknown
    : { cause: 'possible', message: `It can be disrupted (reason=${reason})` }
}

function obstacleOf(cause: NodeObstacle['cause'], { text, untilMs }: Objection): NodeObstacle {
  return { cause, message: sentence(text), ...endOf(untilMs) }
}

function endOf(untilMs: number | undefined): Pick<NodeObstacle, 'until'> {
  return untilMs === undefined ? {} : { until: rfc3339(untilMs) }
}

function withoutTime({ cause, message, until: end }: Verdict): NodeObstacle {
  return { cause, message, ...(end !== undefined && { until: end }) }
}

/** Looks up once per NodePool and reason whether a budget is used up or disruption is paused. */
function budgetObstacles(budgets: DisruptionBudgets): BudgetObstacles {
  const known = new Map<string, readonly NodeObstacle[]>()
  return (pool, reason) => {
    const key = `${pool.metadata.name}/${reason}`
    const found = known.get(key) ?? [...poolObstacles(budgets, pool, reason)]
    known.set(key, found)
    return found
  }
}

function* poolObstacles(
  budgets: DisruptionBudgets,
  pool: NodePool,
  reason: DisruptionReason,
): Generator<NodeObstacle, undefined, undefined> {
  const { byBudgets, disrupting, pause, rollout } = budgets.stateOf(pool, reason)
  if (pause !== undefined) yield { cause: 'brake', message: pauseSentence(pause), ...endOf(pause.untilMs) }
  if (rollout !== undefined) yield { cause: 'brake', message: rolloutText(pool, rollout) }
  if (byBudgets > disrupting) return
  const details = `NodePool=${pool.metadata.name}, allowed=${byBudgets}, disrupted=${disrupting}`
  yield {
    cause: 'budget',
    message: `No budget is left for reason ${reason} (${details})`,
    ...endOf(budgets.opensMs(pool, reason)),
  }
}
