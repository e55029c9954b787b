/** A node and what may keep a pod from it. */
import type { Node, NodeClaim } from '@tenon/api'
import type { NodeStorage } from '../../cluster/nodes/state-node.ts'

/**
 * What is known about the place of a pod. `open`: it may yet get it. `taken`: it has other pods now, or is closed, which
 * says nothing about the pod.
 */
export type Verdict =
  | { readonly kind: 'open' }
  | { readonly kind: 'taken' }
  | { readonly kind: 'short'; readonly names: readonly string[] }
  | { readonly kind: 'refused' }

export const open: Verdict = { kind: 'open' }
export const taken: Verdict = { kind: 'taken' }

/** A node and the pods that wait for it. */
export interface Place {
  readonly claim: NodeClaim
  readonly node: Node
  /** When pods could come first; Unix milliseconds. */
  readonly openedMs: number
  /** When pods last came or went; Unix milliseconds. */
  readonly changedMs: number
  /** Volumes of its pods, and of those of DaemonSets alone; worked out once. */
  readonly storage: { all?: NodeStorage; daemons?: NodeStorage }
}
