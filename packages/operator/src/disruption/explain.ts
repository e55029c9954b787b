/** Explains for every node why it is still there (`GET /debug/decisions`). */
import { labels } from '@tenon/api'
import { type Clock, inSlices, rfc3339, type Slicing } from '@tenon/runtime'
import { labelsOf, type StateNode } from '../state/nodes/state-node.ts'
import type { DisruptionAnswers, NodeDecision } from './answers.ts'
import type { Catalogue, CatalogueReader } from './catalogue.ts'
import type { Commands } from './commands/commands.ts'
import type { FullVerdict, NodeVerdicts } from './verdicts.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly catalogue: CatalogueReader
  readonly commands: Pick<Commands, 'has' | 'isBackingOff'>
  readonly answers: DisruptionAnswers
  readonly verdicts: NodeVerdicts
  readonly slicing: Slicing & { readonly clock: Pick<Clock, 'now'> }
}

/** Answers for every node. */
export class NodeExplainer {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Answers for every node with a claim, as things are now; only verdicts of searches may be older. */
  explain(signal: AbortSignal): Promise<readonly NodeDecision[]> {
    return explainNodes(this.#deps, signal)
  }
}

async function explainNodes(deps: Dependencies, signal: AbortSignal): Promise<readonly NodeDecision[]> {
  const { answers, slicing, state } = deps
  const catalogue = await deps.catalogue.read(signal)
  const stateNodes = state.stateNodes()
  answers.retain(new Set(stateNodes.map(({ name }) => name)))
  // Decisions do not wait until thousands of nodes are looked at.
  return await inSlices(decisionsOn(deps, stateNodes, catalogue), slicing)
}

/** Looks at node after node, in steps; each answer is of its own moment. */
function* decisionsOn(
  { commands, slicing, verdicts }: Dependencies,
  stateNodes: readonly StateNode[],
  catalogue: Catalogue,
): Generator<undefined, readonly NodeDecision[], undefined> {
  const verdictOn = verdicts.now(catalogue)
  const decisions: NodeDecision[] = []
  for (const stateNode of stateNodes) {
    yield
    const { claim, node } = stateNode
    if (claim === undefined) continue
    const { atMs = slicing.clock.now(), ...verdict } = withCommands(stateNode, commands, verdictOn(stateNode))
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

/** A command under way comes before all that stood in its way; one that came to nothing waits before the rest. */
function withCommands(
  { providerID }: StateNode,
  commands: Dependencies['commands'],
  verdict: FullVerdict,
): FullVerdict {
  if (commands.has(providerID))
    return { cause: 'command', message: 'It will be disrupted once its replacement is ready' }
  if (!commands.isBackingOff(providerID)) return verdict
  const { cause, message, until, others = [] } = verdict
  const isInTheWay = cause !== 'possible' && cause !== 'unknown'
  const behind = isInTheWay ? [{ cause, message, ...(until !== undefined && { until }) }, ...others] : []
  const failed = { cause: 'failedCommand', message: 'Commands for it failed; it is retried later' } as const
  return behind.length === 0 ? failed : { ...failed, others: behind }
}
