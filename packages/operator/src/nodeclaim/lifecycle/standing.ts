/** Whether a registered claim still has its Node (reports.md 4), and what to do if several Nodes claim to be its instance. */
import { kinds, labels, type Node, type NodeClaim, terminationFinalizer } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { Kubernetes } from '../../kubernetes.ts'
import type { Settings } from '../../settings.ts'
import { indexes } from '../../state/caches.ts'
import { isReporting, ownNode, silentSinceMs, twinText } from '../../state/nodes/state-node.ts'
import type { ClaimDeleter } from './delete-claim.ts'

type FoundNode =
  | { readonly kind: 'present' }
  /** The API server has the Node, and the cache is behind. */
  | { readonly kind: 'unseen' }
  /** There is no Node, or it lacks what registration adds. */
  | { readonly kind: 'lost'; readonly reason: string; readonly message: string }
  /** The Node with the claim's Node name belongs to another instance. */
  | { readonly kind: 'replaced'; readonly node: Node }

export function wasRegistered(claim: NodeClaim): boolean {
  return (claim.status?.nodeName ?? '') !== ''
}

/** Looks for the Node of a registered claim. If the cache does not show it as it should be, the API server is asked. */
export async function nodeOfRegistered(
  { caches, client }: Kubernetes,
  provider: CloudProvider,
  claim: NodeClaim,
  isInitialized: boolean,
): Promise<FoundNode> {
  const providerID = claim.status?.providerID ?? ''
  const isRegistered = (node: Node | undefined) =>
    node !== undefined &&
    node.spec?.providerID === providerID &&
    // The deletion of a Node is the termination controller's business.
    (node.metadata.deletionTimestamp !== undefined || !lacksRegistration(node, isInitialized))
  const nodes = caches.nodes.byIndex(indexes.byProviderId, providerID)
  const own = ownNode(nodes, claim)
  const former = claim.status?.nodeName ?? ''
  const successor = nodes.length > 1 ? anotherThan(former, own) : undefined
  if (successor !== undefined) return await takenBy(client, successor, former)
  if (nodes.some(isRegistered)) return { kind: 'present' }
  const name = own?.metadata.name ?? nodes[0]?.metadata.name ?? former
  const stored = name === '' ? undefined : await client.get(kinds.node, { name })
  // An ID that is none of the provider's does not tell whose the Node is.
  if (!provider.ownsProviderID(providerID) && !isForeign(providerID, stored)) return { kind: 'present' }
  if (isRegistered(stored)) {
    caches.nodes.relist(`Node ${name} is as it should be, though the cache does not show it`)
    return { kind: 'unseen' }
  }
  if (stored !== undefined && isOfAnother(stored, providerID)) return { kind: 'replaced', node: stored }
  return lost(name, stored?.spec?.providerID === providerID)
}

const anotherThan = (former: string, own: Node | undefined): string | undefined =>
  own?.metadata.name === former ? undefined : own?.metadata.name

function lost(name: string, isThere: boolean): FoundNode {
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

/**
 * Whether Node `name` has taken the instance of Node `former`. Both are read from the API server, as the cache that says
 * so may be behind.
 */
async function takenBy(client: KubeClient, name: string, former: string): Promise<FoundNode> {
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

/** Whether the ID belongs to another provider than the Node's. */
function isForeign(providerID: string, node: Node | undefined): boolean {
  const scheme = schemeOf(providerID)
  const own = schemeOf(node?.spec?.providerID ?? '')
  return scheme !== undefined && own !== undefined && scheme !== own
}

function schemeOf(providerID: string): string | undefined {
  return /^([a-z][-a-z0-9+.]*):\/\/./.exec(providerID)?.[1]
}

function isOfAnother({ spec }: Node, providerID: string): boolean {
  const other = spec?.providerID ?? ''
  return other !== '' && other !== providerID
}

/** The Node of another instance with the Node name of a claim whose Node is lost. */
export async function successorOf(
  { caches, client }: Kubernetes,
  provider: CloudProvider,
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

function lacksRegistration({ metadata }: Node, isInitialized: boolean): boolean {
  return (
    metadata.labels?.[labels.registered] !== 'true' ||
    (isInitialized && metadata.labels[labels.initialized] !== 'true') ||
    !(metadata.finalizers ?? []).includes(terminationFinalizer)
  )
}

/** A kubelet that was silent for this long does not come back under its old name. */
const silentMs = 60_000
const pollMs = 10_000

/** `claimDeleted`: nobody can tell which Node is the instance. */
type TwinOutcome = 'none' | 'claimDeleted' | { readonly requeueMs: number }

/** Removes Nodes that carry the provider ID of a claim beside its own Node (reports-2.md 6). */
export class TwinRemoval {
  readonly #kubernetes: Kubernetes
  readonly #deleter: ClaimDeleter
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #settings: Settings
  /** Since when several kubelets report for the instance, by claim UID. */
  readonly #rivals = new Map<string, number>()

  constructor(
    kubernetes: Kubernetes,
    deleter: ClaimDeleter,
    clock: Clock,
    logger: Logger,
    settings: Settings,
  ) {
    this.#kubernetes = kubernetes
    this.#deleter = deleter
    this.#clock = clock
    this.#logger = logger
    this.#settings = settings
  }

  /** Reports such Nodes, and removes those whose kubelets are gone. */
  async run(claim: NodeClaim, signal: AbortSignal): Promise<TwinOutcome> {
    const { caches, events } = this.#kubernetes
    const uid = claim.metadata.uid ?? ''
    const nodes = caches.nodes.byIndex(indexes.byProviderId, claim.status?.providerID ?? '')
    const own = ownNode(nodes, claim)
    const areRivals = nodes.filter(isReporting).length > 1
    if (nodes.length < 2 || (own === undefined && !areRivals)) {
      this.#rivals.delete(uid)
      return 'none'
    }
    const message = twinText(nodes, own)
    const others = nodes.filter((node) => node !== own)
    for (const object of [claim, ...others])
      events.record({
        object,
        type: 'Warning',
        reason: 'MultipleNodesFound',
        message,
        dedupe: [object.metadata.uid ?? object.metadata.name, message],
      })
    if (areRivals) return await this.#awaitSilence(claim, uid, message)
    this.#rivals.delete(uid)
    if (own !== undefined && isReporting(own))
      for (const node of others) await this.#remove(node, own, signal)
    return { requeueMs: pollMs }
  }

  /** One of several kubelets that report runs elsewhere. If none falls silent in time, the claim is replaced. */
  async #awaitSilence(claim: NodeClaim, uid: string, message: string): Promise<TwinOutcome> {
    const now = this.#clock.monotonic()
    const sinceMs = this.#rivals.get(uid) ?? now
    this.#rivals.set(uid, sinceMs)
    if (now - sinceMs < this.#settings.registrationTimeoutMs) return { requeueMs: pollMs }
    if (await this.#deleter.delete(claim, 'registration_timeout'))
      this.#logger.info('deleting nodeclaim that has several nodes', {
        NodeClaim: { name: claim.metadata.name },
        message,
      })
    this.#rivals.delete(uid)
    return 'claimDeleted'
  }

  /** Deletes the second Node of the instance, which stays. The Node is not drained: its pods do not run there. */
  async #remove({ metadata: { name } }: Node, own: Node, signal: AbortSignal): Promise<void> {
    const { client } = this.#kubernetes
    // The cache may be behind, so both are asked for.
    const [twin, present] = await Promise.all([
      client.get(kinds.node, { name }, { signal }),
      client.get(kinds.node, { name: own.metadata.name }, { signal }),
    ])
    if (twin === undefined || present === undefined || !isReporting(present)) return
    const isTwin = twin.spec?.providerID === present.spec?.providerID
    if (!isTwin || isReporting(twin) || this.#clock.now() - silentSinceMs(twin) < silentMs) return
    const { uid, resourceVersion = '' } = twin.metadata
    const finalizers = (twin.metadata.finalizers ?? []).filter((each) => each !== terminationFinalizer)
    try {
      // With the finalizer, the deletion would delete the instance.
      await client.patch(kinds.node, { name }, { metadata: { finalizers } }, { resourceVersion })
      await client.delete(kinds.node, { name }, { ...(uid !== undefined && { preconditionUid: uid }) })
    } catch (error) {
      if (!isKubeError(error, 'conflict', 'notFound')) throw error
      return
    }
    this.#logger.info('deleted node whose kubelet reports under another name', {
      Node: { name },
      'provider-id': twin.spec?.providerID,
      successor: own.metadata.name,
    })
  }
}
