import type { Node, NodeClaim } from '@tenon/api'

/** A Node on its way out. */
export interface Departure {
  readonly node: Node
  /** Absent when no claim, or several, have the Node. */
  readonly claim: NodeClaim | undefined
  /** Infinity when nothing limits the drain. */
  readonly deadlineMs: number
}
