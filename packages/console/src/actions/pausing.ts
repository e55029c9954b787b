/** The action behind the pause key and the pause button. */
import type { PoolRow } from '../model/view.ts'
import type { Action } from './request.ts'

/**
 * Ends the present pause, or begins one. `tenon resume nodepool/NAME` does not end a pause of the cluster, nor
 * does `tenon resume` end that of a NodePool (ask.md 8).
 * @param nodePool undefined: the whole cluster.
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
