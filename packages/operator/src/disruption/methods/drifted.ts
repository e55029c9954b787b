/** Instances that have drifted (disruption.md 8). */
import { isConditionTrue } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { StateNode } from '../../state/nodes/state-node.ts'

/** Whether the instance's claim says that it has drifted. */
export function isDrifted({ claim }: Pick<StateNode, 'claim'>): boolean {
  return claim !== undefined && isConditionTrue(claim, 'Drifted')
}

const hasDrifted = perObject((stateNode: StateNode) => isDrifted(stateNode))

/** Those that have; worked out once for each list, which is the same as long as no instance has changed. */
export const driftedAmong = perObject((stateNodes: readonly StateNode[]) => stateNodes.filter(hasDrifted))
