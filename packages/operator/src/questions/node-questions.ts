/** Answers why one node is still there, and what its removal would save; carries out nothing. */
import { labels, type PricePerHour } from '@tenon/api'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { ClusterState } from '../state/cluster-state.ts'
import { labelsOf, type StateNode } from '../state/nodes/state-node.ts'
import { DisruptionAnswers, type NodeDecision } from '../disruption/answers.ts'
import type { CandidateFinder } from '../disruption/candidates.ts'
import type { CatalogueReader } from '../disruption/catalogue.ts'
import type { NodeVerdicts } from '../disruption/explain.ts'
import type { Examined, NodeExamination, Saving } from './node-examination.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly catalogue: CatalogueReader
  readonly candidates: CandidateFinder
  readonly examination: NodeExamination
  readonly verdictsWith: (answers: DisruptionAnswers) => NodeVerdicts
  readonly clock: Pick<Clock, 'now'>
}

/** The answer about one node. */
export interface NodeAnswer {
  readonly stateNode: StateNode
  readonly decision: NodeDecision
  readonly pricePerHour: PricePerHour
  /** Absent for a node that has no pods to move, that drifted, or of whose pods nothing can be said. */
  readonly saving?: Saving
}

export class NodeQuestions {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Looks at a node as consolidation would, whatever else is in its way.
   * @param name of its NodeClaim, or else of its Node.
   * @returns undefined when no such node has a NodeClaim.
   */
  async answer(name: string, signal: AbortSignal): Promise<NodeAnswer | undefined> {
    const { candidates, catalogue, clock, examination, state, verdictsWith } = this.#deps
    const known = state.stateNodes().filter(({ claim }) => claim !== undefined)
    const stateNode =
      known.find(({ claim }) => claim?.metadata.name === name) ??
      known.find(({ node }) => node?.metadata.name === name)
    if (stateNode?.claim === undefined) return undefined
    const listed = await catalogue.read(signal)
    const candidate = candidates.described(stateNode, listed)
    const examined = candidate === undefined ? undefined : await examination.of(candidate, signal)
    const answers = new DisruptionAnswers()
    const claimOf = (instance: string) =>
      state.stateNodes().find((each) => each.name === instance)?.claim?.metadata.name
    answers.keepFindings(examined?.findings ?? [], claimOf, clock.now())
    const { atMs = clock.now(), ...verdict } = verdictsWith(answers).now(listed)(stateNode)
    const found = verdict.cause === 'unknown' ? worthwhile(examined) : undefined
    return {
      stateNode,
      decision: {
        ...(stateNode.node !== undefined && { node: stateNode.node.metadata.name }),
        nodeClaim: stateNode.claim.metadata.name,
        nodePool: labelsOf(stateNode)[labels.nodePool] ?? '',
        ...verdict,
        ...found,
        at: rfc3339(atMs),
      },
      pricePerHour: candidate?.pricePerHour,
      ...(examined?.saving && { saving: examined.saving }),
    }
  }
}

/** That the search found something to do. */
function worthwhile(examined: Examined | undefined): Pick<NodeDecision, 'cause' | 'message'> | undefined {
  const scored = examined?.findings.find((each) => each.kind === 'scored' && each.isApproved)
  return scored && { cause: 'possible', message: 'It can be disrupted (reason=Underutilized)' }
}
