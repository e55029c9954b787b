/** The last look at a node before it goes: what runs on it by now (reports-2.md 1 to 3). */
import type { Clock } from '@tenon/runtime'
import { blockingBudgets } from '../../state/pods/pod-budgets.ts'
import { keyOf } from '../../state/pods/pods.ts'
import type { PodsOnNodes } from '../../state/pods/pods-to-move.ts'
import type { Pod } from '@tenon/api'
import { type Candidate, goesInTheEnd } from '../candidates.ts'
import { podObstacles } from '../obstacles.ts'
import type { Command } from './command.ts'

/**
 * Why a node stays, although a command wants it gone: a pod must not be disrupted, or came after the decision, which
 * knows no place for it. A PDB that holds a pod of the decision does not count: its drain waits for that.
 * @param pods what runs on the node; undefined for what the cache shows.
 */
export function whyNodeStays(
  { podsOnNodes, clock }: { readonly podsOnNodes: PodsOnNodes; readonly clock: Pick<Clock, 'now'> },
  { reason }: Pick<Command, 'reason'>,
  { claim, node, pods: decided }: Candidate,
  pods?: readonly Pod[],
): string | undefined {
  const { name } = node.metadata
  const found = pods === undefined ? podsOnNodes.of(name) : podsOnNodes.read(pods)
  const now = clock.now()
  const known = new Set(decided.map(({ metadata }) => metadata.uid))
  const newcomers = found.pods.filter(({ metadata }) => !known.has(metadata.uid))
  if (!goesInTheEnd(claim, reason === 'Drifted' ? 'eventual' : 'graceful')) {
    const held = blockingBudgets(newcomers, podsOnNodes.budgets(), now)
    const { value: obstacle } = podObstacles(found, held, now).next()
    if (obstacle !== undefined) return obstacle.text
  }
  const [newcomer] = newcomers
  // Pods of a drifted node are placed while it drains; every other decision depends on which pods there are.
  if (newcomer === undefined || reason === 'Drifted') return undefined
  return `pod ${keyOf(newcomer.metadata)} was bound to the node after the decision`
}
