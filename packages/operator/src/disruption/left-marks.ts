/** Marks of commands that did not finish (disruption.md 2, step 3). */
import { isConditionTrue, type Node } from '@tenon/api'
import { Tally } from '@tenon/runtime'
import { isDisrupted, type StateNode } from '../state/nodes/state-node.ts'
import type { Commands } from './commands/commands.ts'
import type { DisruptionMarks } from './commands/marks.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly commands: Pick<Commands, 'has'>
  readonly marks: DisruptionMarks
}

export class LeftMarks {
  readonly #deps: Dependencies
  /** Instances with marks; those of commands that are under way among them. */
  readonly #marked = new Tally<StateNode, Set<StateNode>>({
    begin: () => new Set(),
    count: (marked, stateNode, by) => {
      if (by === -1) marked.delete(stateNode)
      else if (isMarked(stateNode)) marked.add(stateNode)
    },
  })

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Takes them off again. */
  async settle(): Promise<void> {
    const { commands, marks, state } = this.#deps
    for (const { node, claim, isInitialized, providerID } of this.#marked.of(state.stateNodes())) {
      if (commands.has(providerID)) continue
      if (node !== undefined && hasLeftTaint(node)) await marks.taint(node, false)
      if (claim !== undefined && isInitialized) await marks.clearReason(claim)
    }
  }
}

function isMarked({ node, claim, isInitialized, isMarkedForDeletion }: StateNode): boolean {
  if (isMarkedForDeletion || claim === undefined) return false
  const hasReason = isInitialized && isConditionTrue(claim, 'DisruptionReason')
  return hasReason || (node !== undefined && hasLeftTaint(node))
}

/** Whether the node has the taint of a command and is not on its way out. */
const hasLeftTaint = (node: Node): boolean =>
  isDisrupted(node) && node.metadata.deletionTimestamp === undefined
