/** Decisions that may not be carried out because the cluster changed after them. That is no error: the next pass decides again. */
import type { Exceeded } from '../state/nodepools/limit-reservations.ts'

/** What has changed since the decision. */
export type Overtaken =
  | { readonly kind: 'poolGone'; readonly nodePool: string }
  /** The NodePool exceeds its limit for this resource. */
  | { readonly kind: 'limitExceeded'; readonly nodePool: string; readonly limit: string }
  /** Less of the NodePool's limit for this resource is left than the claim may take. */
  | { readonly kind: 'limitReached'; readonly nodePool: string; readonly limit: string }
  /** Less of a quota is left than the claim may take. */
  | { readonly kind: 'quotaReached'; readonly quota: string; readonly resource: string }
  /** The NodePool has been paused since. */
  | { readonly kind: 'paused'; readonly nodePool: string; readonly because: string }
  /** Another command is about this Node. */
  | { readonly kind: 'commandUnderWay'; readonly node: string }
  /** The NodePool is only observed. */
  | { readonly kind: 'observed' }

/** A reservation that was refused. */
export function exceededBy(nodePool: string, exceeded: Exceeded): Overtaken {
  return exceeded.kind === 'limit'
    ? { kind: 'limitReached', nodePool, limit: exceeded.resource }
    : { ...exceeded, kind: 'quotaReached' }
}

export function overtakenText(overtaken: Overtaken): string {
  switch (overtaken.kind) {
    case 'poolGone':
      return `NodePool ${overtaken.nodePool} is gone or being deleted`
    case 'limitExceeded':
      return `NodePool ${overtaken.nodePool} exceeds its limit for ${overtaken.limit}`
    case 'limitReached':
      return `NodePool ${overtaken.nodePool} has no room left below its limit for ${overtaken.limit}`
    case 'quotaReached':
      return `CapacityQuota ${overtaken.quota} has too little ${overtaken.resource} left`
    case 'paused':
      return `NodePool ${overtaken.nodePool}: ${overtaken.because}`
    case 'commandUnderWay':
      return `node ${overtaken.node} is being disrupted already`
    case 'observed':
      return 'its NodePool is only observed'
  }
}
