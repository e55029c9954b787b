/** What happens to the pods of a removed node. */
import type { Pod } from '@tenon/api'
import { type BlockingReason, type DrainContext, drainVerdict } from './rules.ts'

export interface Drain {
  readonly kind: 'drain'
  /** Pods that need another node. */
  readonly toMove: readonly Pod[]
  readonly ofDaemonSets: readonly Pod[]
  /** The node waits until they have ended. */
  readonly awaited: readonly Pod[]
}

export type NodeDrain =
  | Drain
  | { readonly kind: 'blocked'; readonly pod: Pod; readonly reason: BlockingReason }

export function drainOf(pods: Iterable<Pod>, context: DrainContext): NodeDrain {
  const toMove: Pod[] = []
  const ofDaemonSets: Pod[] = []
  const awaited: Pod[] = []
  for (const pod of pods) {
    const verdict = drainVerdict(pod, context)
    switch (verdict.kind) {
      case 'block':
        return { kind: 'blocked', pod, reason: verdict.reason }
      case 'move':
        toMove.push(pod)
        break
      case 'daemonSet':
        ofDaemonSets.push(pod)
        break
      case 'await':
        awaited.push(pod)
        break
      case 'skip':
      case 'finished':
        break
    }
  }
  return { kind: 'drain', toMove, ofDaemonSets, awaited }
}

/** Whether pods must leave a node; `waiting`: there are only pods to wait for. */
export type Emptiness = 'empty' | 'waiting' | 'occupied'

/** Stops at the first pod that must move or blocks the removal. */
export function emptinessOf(pods: Iterable<Pod>, context: DrainContext): Emptiness {
  let emptiness: Emptiness = 'empty'
  for (const pod of pods) {
    const { kind } = drainVerdict(pod, context)
    if (kind === 'move' || kind === 'block') return 'occupied'
    if (kind === 'await') emptiness = 'waiting'
  }
  return emptiness
}
