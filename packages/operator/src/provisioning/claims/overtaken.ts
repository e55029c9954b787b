/** Decisions that cannot be carried out any more, as something has changed since they were made. Nobody is at fault. */

/** What has changed since a decision was made. */
export type Overtaken =
  | { readonly kind: 'poolGone'; readonly nodePool: string }
  /** The NodePool has more than its limit for this resource allows. */
  | { readonly kind: 'limitExceeded'; readonly nodePool: string; readonly limit: string }
  /** The NodePool has less left below its limit for this resource than the claim may take. */
  | { readonly kind: 'limitReached'; readonly nodePool: string; readonly limit: string }
  /** The NodePool has been paused since. */
  | { readonly kind: 'paused'; readonly nodePool: string; readonly because: string }
  /** Another command is about this Node. */
  | { readonly kind: 'commandUnderWay'; readonly node: string }
  /** It is only noted. */
  | { readonly kind: 'observed' }

export function overtakenText(overtaken: Overtaken): string {
  switch (overtaken.kind) {
    case 'poolGone':
      return `NodePool ${overtaken.nodePool} is gone or being deleted`
    case 'limitExceeded':
      return `NodePool ${overtaken.nodePool} exceeds its limit for ${overtaken.limit}`
    case 'limitReached':
      return `NodePool ${overtaken.nodePool} has no room left below its limit for ${overtaken.limit}`
    case 'paused':
      return `NodePool ${overtaken.nodePool}: ${overtaken.because}`
    case 'commandUnderWay':
      return `node ${overtaken.node} is being disrupted already`
    case 'observed':
      return 'its NodePool is only observed'
  }
}
