/** Whether a claim that is registered still has the Node it was registered with (reports.md 4). */
import type { Clock, Logger } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import { kinds, labels, type Node, type NodeClaim, terminationFinalizer } from '@tenon/api'
import { indexes } from '../../state/caches.ts'
import { isReporting, ownNode } from '../../state/nodes/state-node.ts'
import type { ClaimDeleter } from './delete-claim.ts'
import type { ClaimDraft } from './stage.ts'
import type { Kubernetes } from '../../kubernetes.ts'

export interface StandingParts {
  readonly kubernetes: Kubernetes<'nodes'>
  readonly provider: Pick<CloudProvider, 'ownsProviderID'>
  readonly deleter: ClaimDeleter
  readonly clock: Clock
  readonly logger: Logger
}

export type Standing =
  | { readonly kind: 'holds' }
  /** The cache is late: by the API server the Node is as it should be. */
  | { readonly kind: 'unseen' }
  /** There is no Node, or it lacks what registration adds. */
  | { readonly kind: 'lost'; readonly reason: string; readonly message: string }
  /** The Node with the claim's Node name belongs to another instance. */
  | { readonly kind: 'replaced'; readonly node: Node }

/** Whether the claim had a Node before. */
export function wasRegistered(claim: NodeClaim): boolean {
  return (claim.status?.nodeName ?? '') !== ''
}

/**
 * Compares a registered claim with its Node. If the cache does not agree with the claim, the API server is asked.
 */
export async function standingOf(
  { kubernetes: { caches, client }, provider }: StandingParts,
  claim: NodeClaim,
  isInitialized: boolean,
): Promise<Standing> {
  const providerID = claim.status?.providerID ?? ''
  const isWhole = (node: Node | undefined) =>
    node !== undefined &&
    node.spec?.providerID === providerID &&
    // A Node that is being deleted has its own way to go.
    (node.metadata.deletionTimestamp !== undefined || !lacksMarks(node, isInitialized))
  const nodes = caches.nodes.byIndex(indexes.byProviderId, providerID)
  const own = ownNode(nodes, claim)
  const former = claim.status?.nodeName ?? ''
  const successor = nodes.length > 1 ? anotherThan(former, own) : undefined
  if (successor !== undefined) return await takenBy(client, successor, former)
  if (nodes.some(isWhole)) return { kind: 'holds' }
  const name = own?.metadata.name ?? nodes[0]?.metadata.name ?? former
  const stored = name === '' ? undefined : await client.get(kinds.node, { name })
  // An ID that is no instance's does not say whose the Node is.
  if (!provider.ownsProviderID(providerID) && !isForeign(providerID, stored)) return { kind: 'holds' }
  if (isWhole(stored)) {
    caches.nodes.relist(`Node ${name} is as it should be, though the cache does not show it`)
    return { kind: 'unseen' }
  }
  if (stored !== undefined && isOfAnother(stored, providerID)) return { kind: 'replaced', node: stored }
  return lost(name, stored?.spec?.providerID === providerID)
}

function anotherThan(former: string, own: Node | undefined): Node | undefined {
  return own?.metadata.name === former ? undefined : own
}

function lost(name: string, isThere: boolean): Standing {
  const kind = 'lost'
  return isThere
    ? {
        kind,
        reason: 'NodeRegisteredAgain',
        message: `Node ${name} lacks the finalizer or the labels of a registered Node; it is registered again`,
      }
    : {
        kind,
        reason: 'NodeNotFound',
        message: `Node ${name} is gone from the cluster; it may register again`,
      }
}

/** Another Node has the provider ID by the cache; both are read freshly. */
async function takenBy(
  client: Kubernetes<'nodes'>['client'],
  { metadata: { name } }: Node,
  former: string,
): Promise<Standing> {
  const [successor, silent] = await Promise.all(
    [name, former].map(async (each) => await client.get(kinds.node, { name: each })),
  )
  const isTaken = successor !== undefined && isReporting(successor)
  if (!isTaken || (silent !== undefined && isReporting(silent))) return { kind: 'unseen' }
  return {
    kind: 'lost',
    reason: 'NodeRegisteredAgain',
    message: `Node ${name} reports for the instance of Node ${former}; it is registered in its place`,
  }
}

/** Whether an ID is one of another provider than the Node's. */
function isForeign(providerID: string, node: Node | undefined): boolean {
  const scheme = schemeOf(providerID)
  const own = schemeOf(node?.spec?.providerID ?? '')
  return scheme !== undefined && own !== undefined && scheme !== own
}

/** The scheme of a provider ID; undefined if it has none, or nothing after it. */
function schemeOf(providerID: string): string | undefined {
  return /^([a-z][-a-z0-9+.]*):\/\/./.exec(providerID)?.[1]
}

function isOfAnother({ spec }: Node, providerID: string): boolean {
  const other = spec?.providerID ?? ''
  return other !== '' && other !== providerID
}

/** The Node of another instance that has the Node name of a claim without a Node. */
export async function successorOf(
  { kubernetes: { caches, client }, provider }: StandingParts,
  claim: NodeClaim,
): Promise<Node | undefined> {
  const name = claim.status?.nodeName ?? ''
  const providerID = claim.status?.providerID ?? ''
  const seen = caches.nodes.get({ name })
  if (!provider.ownsProviderID(providerID) && !isForeign(providerID, seen)) return undefined
  if (seen === undefined || !isOfAnother(seen, providerID)) return undefined
  const stored = await client.get(kinds.node, { name })
  return stored !== undefined && isOfAnother(stored, providerID) ? stored : undefined
}

function lacksMarks({ metadata }: Node, isInitialized: boolean): boolean {
  return (
    metadata.labels?.[labels.registered] !== 'true' ||
    (isInitialized && metadata.labels[labels.initialized] !== 'true') ||
    !(metadata.finalizers ?? []).includes(terminationFinalizer)
  )
}

/** The claim as one that waits for its Node again. */
export function forgetNode(
  { clock, logger }: StandingParts,
  draft: ClaimDraft,
  { reason, message }: Extract<Standing, { kind: 'lost' }>,
): ClaimDraft {
  const { claim, conditions } = draft
  logger.info('nodeclaim lost its node', { NodeClaim: { name: claim.metadata.name }, reason })
  const now = clock.now()
  return {
    ...draft,
    conditions: conditions
      .set({ type: 'Registered', status: 'Unknown', reason, message }, now)
      .set({ type: 'Initialized', status: 'Unknown', reason, message }, now),
  }
}

/** Deletes a claim whose Node name another instance has taken. */
export async function endReplaced(deps: StandingParts, claim: NodeClaim, node: Node): Promise<void> {
  const { deleter, kubernetes, logger } = deps
  const message = `Node ${node.metadata.name} belongs to another instance now (provider ID ${node.spec?.providerID}); the claim of the former instance is deleted`
  if (!(await deleter.delete(claim, 'node_replaced'))) return
  logger.info('deleting nodeclaim whose node is another instance', {
    NodeClaim: { name: claim.metadata.name },
    Node: { name: node.metadata.name },
    'provider-id': claim.status?.providerID,
  })
  kubernetes.events.record({
    object: claim,
    type: 'Warning',
    reason: 'NodeReplaced',
    message,
    dedupe: [claim.metadata.uid ?? ''],
  })
}
