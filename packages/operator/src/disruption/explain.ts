/** Explains for every node why it is still there (`GET /debug/decisions`). */
import {
  annotations,
  type DisruptionReason,
  isConditionTrue,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
} from '@tenon/api'
import { type Clock, inSlices, rfc3339, type Slicing } from '@tenon/runtime'
import { labelsOf, type StateNode } from '../state/nodes/state-node.ts'
import type { DisruptionAnswers, NodeDecision, NodeObstacle, StuckReason, Verdict } from './answers.ts'
import type { Catalogue, CatalogueReader } from './catalogue.ts'
import type { Commands } from './commands/commands.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { pauseSentence } from '../state/pause.ts'
import { type DisruptionBudgets, rolloutText } from './budget.ts'
import { type Candidate, type CandidateFinder, isEmpty } from './candidates.ts'
import type { Obstacle } from './obstacles.ts'
import type { ConsolidationPolicy, Objection } from './policy.ts'
import { sentence } from './refusals.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly catalogue: CatalogueReader
  readonly commands: Pick<Commands, 'has' | 'isBackingOff'>
  readonly answers: DisruptionAnswers
  readonly verdicts: NodeVerdicts
  readonly slicing: Slicing & { readonly clock: Pick<Clock, 'now'> }
}

export class NodeExplainer {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Answers for nodes with a claim, as things are now; only verdicts of searches may be older.
   * @param isAsked which nodes; all by default.
   */
  async explain(
    signal: AbortSignal,
    isAsked: (stateNode: StateNode) => boolean = () => true,
  ): Promise<readonly NodeDecision[]> {
    const { answers, catalogue, slicing, state } = this.#deps
    // Without such a node the cloud is not asked for its instance types.
    if (!state.stateNodes().some(isAsked)) return []
    const listed = await catalogue.read(signal)
    const stateNodes = state.stateNodes()
    answers.retain(new Set(stateNodes.map(({ name }) => name)))
    return await inSlices(this.#decisions(stateNodes.filter(isAsked), listed), slicing)
  }

  /** In steps: decisions do not wait until thousands of nodes are examined. Each answer is of its own moment. */
  *#decisions(
    stateNodes: readonly StateNode[],
    catalogue: Catalogue,
  ): Generator<undefined, readonly NodeDecision[], undefined> {
    const { commands, slicing, verdicts } = this.#deps
    const verdictOn = verdicts.now(catalogue)
    const decisions: NodeDecision[] = []
    for (const stateNode of stateNodes) {
      yield
      const { claim, node } = stateNode
      if (claim === undefined) continue
      const { atMs = slicing.clock.now(), ...verdict } = withCommands(
        stateNode,
        commands,
        verdictOn(stateNode),
      )
      decisions.push({
        ...(node !== undefined && { node: node.metadata.name }),
        nodeClaim: claim.metadata.name,
        nodePool: labelsOf(stateNode)[labels.nodePool] ?? '',
        ...verdict,
        at: rfc3339(atMs),
      })
    }
    return decisions
  }
}

/** A command under way comes before all obstacles, and so does the back-off after one that failed. */
function withCommands(
  { providerID }: StateNode,
  commands: Dependencies['commands'],
  verdict: FullVerdict,
): FullVerdict {
  if (commands.has(providerID))
    return { cause: 'command', message: 'It will be disrupted once its replacement is ready' }
  if (!commands.isBackingOff(providerID)) return verdict
  const { cause, message, until, others = [], stuck } = verdict
  const isObstacle = cause !== 'possible' && cause !== 'unknown'
  const behind = isObstacle ? [{ cause, message, ...(until !== undefined && { until }) }, ...others] : []
  const failed = { cause: 'failedCommand', message: 'Commands for it failed; it is retried later' } as const
  return behind.length === 0 ? failed : { ...failed, others: behind, ...(stuck && { stuck }) }
}

interface NodeVerdictsParts {
  readonly candidates: CandidateFinder
  readonly budgets: DisruptionBudgets
  readonly policy: ConsolidationPolicy
  readonly answers: Pick<DisruptionAnswers, 'verdictOn'>
  /** Undefined where nodes are not repaired, and in the compatibility mode. */
  readonly outlooks?: RepairOutlooks
}

/** What becomes of unhealthy nodes. */
interface RepairOutlooks {
  /** @returns undefined for a node that is well. */
  outlookOn(node: Node, claim: NodeClaim): { readonly message: string; readonly untilMs?: number } | undefined
}

/** The first obstacle of a node, and further ones. */
interface FullVerdict extends Verdict {
  readonly others?: readonly NodeObstacle[]
  readonly stuck?: StuckReason
}

type BudgetObstacles = (pool: NodePool, reason: DisruptionReason) => readonly NodeObstacle[]

const unknown: Verdict = {
  cause: 'unknown',
  message: 'The placement of its pods elsewhere has not been evaluated yet',
}

export class NodeVerdicts {
  readonly #deps: NodeVerdictsParts

  constructor(deps: NodeVerdictsParts) {
    this.#deps = deps
  }

  /** Verdicts on nodes for the current state; each budget is looked up once. */
  now(catalogue: Catalogue): (stateNode: StateNode) => FullVerdict {
    const { budgets, candidates } = this.#deps
    const obstaclesOf = budgetObstacles(budgets)
    return (stateNode) => {
      const candidate = candidates.described(stateNode, catalogue)
      const obstacles = [...candidates.obstacles(stateNode, catalogue)]
      const against = candidate === undefined ? [] : [...this.#against(candidate, obstaclesOf)]
      const [first, ...others] = [
        ...this.#outlookOn(stateNode),
        ...obstacles.map(({ by, text, untilMs }) => ({
          cause: by,
          message: sentence(text),
          ...endOf(untilMs),
        })),
        ...against,
      ]
      // Behind a budget, the PDBs still hold the node for good.
      const stuck = stuckBy(stateNode, obstacles, against)
      if (first !== undefined)
        return {
          ...first,
          ...(others.length > 0 && { others: others.map(withoutTime) }),
          ...(stuck && { stuck }),
        }
      return candidate === undefined ? unknown : unopposed(candidate)
    }
  }

  #outlookOn({ node, claim }: StateNode): readonly Verdict[] {
    const outlook = node && claim && this.#deps.outlooks?.outlookOn(node, claim)
    return outlook === undefined
      ? []
      : [{ cause: 'repair', message: outlook.message, ...endOf(outlook.untilMs) }]
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

/** What ends by itself, so that it does not matter for how long a node is stuck. */
const passing: ReadonlySet<NodeObstacle['cause']> = new Set(['budget', 'brake', 'failedCommand'])

/** Why PDBs alone hold a candidate, or a node that is drained without a deadline, for good; undefined if they do not. */
function stuckBy(
  { claim, isMarkedForDeletion }: StateNode,
  obstacles: readonly Obstacle[],
  against: readonly NodeObstacle[],
): StuckReason | undefined {
  const found = obstacles.find(({ stuck }) => stuck !== undefined)?.stuck
  if (found === undefined) return undefined
  if (isMarkedForDeletion) {
    const hasDeadline = claim?.metadata.annotations?.[annotations.terminationTimestamp] !== undefined
    return hasDeadline || claim?.metadata.deletionTimestamp === undefined ? undefined : found
  }
  const isAlone =
    obstacles.every(({ stuck }) => stuck !== undefined) && against.every(({ cause }) => passing.has(cause))
  return isAlone ? found : undefined
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
  // With consolidateAfter Never, pods that just started spare their node without an end.
  return untilMs === undefined || !Number.isFinite(untilMs) ? {} : { until: rfc3339(untilMs) }
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
  const { byBudgets, disrupting, pace, pause, rollout } = budgets.stateOf(pool, reason)
  if (pause !== undefined) yield { cause: 'brake', message: pauseSentence(pause), ...endOf(pause.untilMs) }
  if (rollout !== undefined) yield { cause: 'brake', message: rolloutText(pool, rollout) }
  if (pace !== undefined && (disrupting >= pace.nodes || pace.taken >= pace.nodes))
    yield {
      cause: 'brake',
      message: `After a pause, nodes of NodePool ${pool.metadata.name} go step by step, ${pace.nodes} of them now`,
      ...endOf(pace.untilMs),
    }
  if (byBudgets > disrupting) return
  const details = `NodePool=${pool.metadata.name}, allowed=${byBudgets}, disrupted=${disrupting}`
  yield {
    cause: 'budget',
    message: `No budget is left for reason ${reason} (${details})`,
    ...endOf(budgets.opensMs(pool, reason)),
  }
}
