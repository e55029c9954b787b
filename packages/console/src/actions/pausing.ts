/** What a key or a button does about pauses. Pure. */
import type { PoolRow } from '../model/view.ts'
import type { Action } from './request.ts'

/**
 * Ends the pause that there is, or begins one: `tenon resume nodepool/NAME` does not end a pause of the cluster, nor
 * `tenon resume` that of a NodePool (ask.md 8).
 * @param nodePool whose pause is meant; that of the cluster without it.
 */
export function pauseAction(
  pools: Iterable<Pick<PoolRow, 'name' | 'pausedBy'>>,
  nodePool?: string,
): Extract<Action, { kind: 'pause' | 'resume' }> {
  const all = Array.from(pools)
  if (nodePool === undefined)
    return { kind: all.some(({ pausedBy }) => pausedBy === 'cluster') ? 'resume' : 'pause' }
  switch (all.find(({ name }) => name === nodePool)?.pausedBy) {
    case 'nodepool':
      return { kind: 'resume', nodePool }
    case 'cluster':
      return { kind: 'resume' }
    case undefined:
      return { kind: 'pause', nodePool }
  }
}
