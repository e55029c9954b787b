/** Texts of the reasons why nodes stay. */
import { counted } from '@tenon/api'
import { type NodeRefusal, type RemovalResult, renderPodReason, renderShortage } from '@tenon/engine'
import { keyOf } from '../state/pods/pods.ts'

const listedPods = 5

export function refusalText(refusal: NodeRefusal, claimOf: ClaimOf): string {
  switch (refusal.kind) {
    case 'stranded':
      return strandedText(refusal.pods, claimOf)
    case 'severalNodes':
      return refusal.short === undefined
        ? `its pods would need ${refusal.count} replacement nodes`
        : `its pods would need ${refusal.count} replacement nodes now, because single nodes that fit them are unavailable (${renderShortage(refusal.short)}); it is retried automatically`
    case 'minValues':
      return `no cheaper set of instance types keeps minValues (${[...refusal.missing]
        .map(([key, found]) => `${key} has ${found}`)
        .join(', ')})`
    case 'noCheaper':
      return refusal.short === undefined
        ? "can't replace with a cheaper node"
        : `can't replace with a cheaper node now: cheaper ones are unavailable (${renderShortage(refusal.short)}); it is retried automatically`
    case 'busyNodes':
      return 'its pods fit on nodes that are still within consolidateAfter; it is retried automatically'
    case 'spotToSpotDisabled':
      return 'replacing a spot node with a cheaper spot node is disabled (feature gate SpotToSpotConsolidation)'
    case 'spotToSpotTypes':
      return `replacing a spot node with a spot node requires 15 cheaper instance types, had ${refusal.found}`
    case 'budget':
      return `its pods run together with others, whose nodes go only with it, and the budget of NodePool ${refusal.nodePool} allows ${refusal.allowed} of these ${refusal.nodes} nodes now`
    case 'undecided':
      return 'there was not enough time to search for a placement of its pods'
  }
}

/** Name of the NodeClaim of an instance. */
export type ClaimOf = (instance: string) => string | undefined

/** Pods that would lose their place, the first few by name. */
export function strandedText(failures: RemovalResult['stranded'], claimOf: ClaimOf): string {
  const listed = failures.slice(0, listedPods).map(({ pod, reason }) => {
    const claim = reason.kind === 'uninitializedNode' ? claimOf(reason.node) : undefined
    const where = claim === undefined ? '' : ` (NodeClaim ${claim})`
    return `${keyOf(pod.metadata)} => ${renderPodReason(reason)}${where}`
  })
  const rest = failures.length - listed.length
  return `not all pods would schedule, ${listed.join('; ')}${rest > 0 ? ` and ${counted(rest, 'other')}` : ''}`
}

export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
