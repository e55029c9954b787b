/** Marks of commands that did not finish (disruption.md 2, step 3). */
import { isConditionTrue, type Node } from '@tenon/api'
import { inSlices, type Slicing } from '@tenon/runtime'
import { isDisrupted, type StateNode } from '../cluster/nodes/state-node.ts'
import type { Commands } from './commands/commands.ts'
import type { DisruptionMarks } from './commands/marks.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly commands: Pick<Commands, 'has'>
  readonly marks: DisruptionMarks
  readonly slicing: Slicing
}

/** Instances looked at between two questions whether others are to run. */
const nodesPerStep = 64

export class LeftMarks {
  readonly #deps: Dependencies
  /** The last list of instances, and those of them with marks. */
  #seen: { readonly all: readonly StateNode[]; readonly marked: readonly StateNode[] } | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Takes them off again. */
  async settle(): Promise<void> {
    const { commands, marks, slicing, state } = this.#deps
    const all = state.stateNodes()
    // The list is the same as long as no instance has changed.
    if (this.#seen?.all !== all) this.#seen = { all, marked: await inSlices(markedAmong(all), slicing) }
    for (const { node, claim, isInitialized, providerID } of this.#seen.marked) {
      if (commands.has(providerID)) continue
      if (node !== undefined && hasLeftTaint(node)) await marks.taint(node, false)
      if (claim !== undefined && isInitialized) await marks.clearReason(claim)
    }
  }
}

/** Instances with marks, in steps; those of commands that are under way among them. */
function* markedAmong(all: readonly StateNode[]): Generator<undefined, readonly StateNode[], undefined> {
  const marked: StateNode[] = []
  for (const [index, stateNode] of all.entries()) {
    if (index % nodesPerStep === 0) yield
    const { node, claim, isMarkedForDeletion, isInitialized } = stateNode
    if (isMarkedForDeletion || claim === undefined) continue
    const hasReason = isInitialized && isConditionTrue(claim, 'DisruptionReason')
    if (hasReason || (node !== undefined && hasLeftTaint(node))) marked.push(stateNode)
  }
  return marked
}

/** Whether the node has the taint of a command and is not on its way out. */
const hasLeftTaint = (node: Node): boolean =>
  isDisrupted(node) && node.metadata.deletionTimestamp === undefined
