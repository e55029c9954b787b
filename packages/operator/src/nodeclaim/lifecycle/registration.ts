import {
  apiVersionOf,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  sameTaint,
  type Taint,
  terminationFinalizer,
  unregisteredTaint,
} from '@tenon/api'
import { type Cache, isKubeError, type Lane, mergePatchOf } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Listeners, Logger } from '@tenon/runtime'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'
import { indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { ownNode, twinText } from '../../state/nodes/state-node.ts'
import { plannedPodsAnnotation } from '../../state/pods/pod-plans.ts'
import { claimTraceAnnotations } from '../claim-traces.ts'
import type { ClaimDraft, StageResult } from './controller.ts'
import type { ClaimDeleter } from './delete-claim.ts'
import { isComplete } from './initialization.ts'
import { askHooks, type HookOutcome } from './registration-hooks.ts'
import { nodeOfRegistered, successorOf, TwinRemoval, wasRegistered } from './standing.ts'

/** Keeps a new Node closed for pods, such as until the scheduler knows which pods it is for. */
export interface OpeningHold {
  /** Claims to ask for again after this time, or earlier. */
  readonly due: Listeners<{ readonly name: string; readonly afterMs: number }>
  /** Milliseconds after which to ask again; 0 once the claim's Node may open. */
  waitMs(claim: NodeClaim): number
}

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  /** `isHolding`: whether other Nodes are being held, or were until now, so that this one should open with them. */
  readonly hold: OpeningHold & { isHolding(claim: NodeClaim): boolean }
  readonly deleter: ClaimDeleter
  readonly metrics: Metrics
  readonly claimJournal: ClaimJournal
  readonly clock: Clock
  readonly settings: Settings
  readonly logger: Logger
}

/** How often the successor of a lost Node is looked for. */
const absentPollMs = 10_000

/**
 * The second stage: adds labels, taints and the finalizer to the claim's Node (lifecycle.md 3.2), and opens it once every
 * hook of the provider has passed and nothing holds it. A Node that was deleted and registers again is treated as new.
 */
export class Registration {
  readonly #deps: Dependencies
  readonly #seenTaints: SeenTaints
  readonly #twins: TwinRemoval

  constructor(deps: Dependencies) {
    const { clock, deleter, kubernetes, logger, settings } = deps
    this.#deps = deps
    this.#seenTaints = new SeenTaints(kubernetes.caches.nodes)
    this.#twins = new TwinRemoval(kubernetes, deleter, clock, logger, settings)
  }

  async run(draft: ClaimDraft, signal: AbortSignal): Promise<StageResult> {
    const { clock, kubernetes, logger, provider } = this.#deps
    const { claim, conditions } = draft
    if (!conditions.isTrue('Registered')) return await this.#register(draft, signal)
    const found = await nodeOfRegistered(kubernetes, provider, claim, conditions.isTrue('Initialized'))
    switch (found.kind) {
      case 'present': {
        const restamped = conditions.restamp('Registered', clock.now())
        const twins = await this.#twins.run(claim, signal)
        if (twins === 'claimDeleted') return { kind: 'deleted' }
        return {
          kind: 'continue',
          draft: { ...draft, conditions: restamped },
          ...(twins !== 'none' && { requeueMs: twins.requeueMs }),
        }
      }
      case 'unseen':
        return { kind: 'continue', draft, isBackingOff: true, isLast: true }
      case 'replaced':
        await this.#deleteReplaced(claim, found.node)
        return { kind: 'deleted' }
      case 'lost': {
        const { reason, message } = found
        logger.info('nodeclaim lost its node', { NodeClaim: { name: claim.metadata.name }, reason })
        const now = clock.now()
        const waiting = conditions
          .set({ type: 'Registered', status: 'Unknown', reason, message }, now)
          .set({ type: 'Initialized', status: 'Unknown', reason, message }, now)
        return await this.#register({ ...draft, conditions: waiting }, signal)
      }
    }
  }

  async #register(draft: ClaimDraft, signal: AbortSignal): Promise<StageResult> {
    const { clock, hold, kubernetes, provider, state } = this.#deps
    const { claim, conditions } = draft
    const providerID = claim.status?.providerID ?? ''
    const nodes = providerID === '' ? [] : kubernetes.caches.nodes.byIndex(indexes.byProviderId, providerID)
    if (nodes.length === 0) return await this.#awaitNode(draft)
    const node = ownNode(nodes, claim)
    if (node === undefined)
      return withCondition(draft, 'False', 'MultipleNodesFound', twinText(nodes, node), clock.now())
    if (isMissingTaint(node)) this.#reportMissingTaint(claim, node)
    const hooks = await askHooks(provider.registrationHooks ?? [], claim, signal)
    const isPending = hooks.pending.length > 0
    const holdMs = isPending ? 0 : hold.waitMs(claim)
    const registered = isPending || holdMs > 0 ? claim : withLabels(claim, hooks.labels)
    const synced = syncedNode(node, registered, this.#seenTaints, provider.claimAnnotations)
    if (holdMs > 0) {
      // After a restart, the owner reference shows that startup taints which are missing then were removed.
      if (hasStartupTaints(claim)) await this.#storeNode(node, synced, 'urgent')
      return { kind: 'continue', draft, requeueMs: holdMs }
    }
    const open = opened(synced)
    // One write instead of two: if many Nodes open at once, pods may go to the wrong one between the writes.
    const isInitialized = isComplete(kubernetes.caches, state, open, registered)
    const stored = await this.#storeNode(
      node,
      isPending ? synced : isInitialized ? withLabel(open, labels.initialized) : open,
      // Nodes that were held open together: pods that are scheduled in between would all go to the first.
      hold.isHolding(claim) ? 'together' : 'urgent',
    )
    if (stored === undefined)
      return { kind: 'continue', draft, requeueMs: hold.isHolding(claim) ? 100 : 1000, isLast: true }
    if (isPending) return pendingHooks(draft, hooks, clock.now())
    return {
      kind: 'continue',
      draft: {
        claim: { ...registered, status: { ...registered.status, nodeName: node.metadata.name } },
        conditions: conditions.set({ type: 'Registered', status: 'True' }, clock.now()),
        node: stored,
      },
      afterStore: () => {
        this.#reportRegistered(registered, node)
      },
    }
  }

  /** No Node has the claim's provider ID. */
  async #awaitNode(draft: ClaimDraft): Promise<StageResult> {
    const { clock, kubernetes, provider } = this.#deps
    const { claim } = draft
    const message = 'Node not registered with the cluster yet'
    const waiting = withCondition(draft, 'Unknown', 'NodeNotFound', message, clock.now())
    if (!wasRegistered(claim)) return waiting
    const successor = await successorOf(kubernetes, provider, claim)
    // Nodes of other instances do not trigger a reconcile of this claim.
    if (successor === undefined) return { ...waiting, requeueMs: absentPollMs }
    await this.#deleteReplaced(claim, successor)
    return { kind: 'deleted' }
  }

  /** Deletes a claim whose Node name another instance has taken. */
  async #deleteReplaced(claim: NodeClaim, node: Node): Promise<void> {
    const { deleter, kubernetes, logger } = this.#deps
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
      message: `Node ${node.metadata.name} belongs to another instance now (provider ID ${node.spec?.providerID}); the claim of the former instance is deleted`,
      dedupe: [claim.metadata.uid ?? ''],
    })
  }

  /** @returns the stored Node; undefined if it has changed or is gone. */
  async #storeNode(before: Node, after: Node, lane: Lane): Promise<Node | undefined> {
    const patch = mergePatchOf(before, after)
    if (patch === undefined) return before
    const { name, resourceVersion } = before.metadata
    try {
      return await this.#deps.kubernetes.client.patch(kinds.node, { name }, patch, {
        lane,
        ...(resourceVersion !== undefined && { resourceVersion }),
      })
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound')) return undefined
      throw error
    }
  }

  #reportMissingTaint(claim: NodeClaim, node: Node): void {
    const { kubernetes, logger } = this.#deps
    logger.warn('node joined without the unregistered taint', { Node: { name: node.metadata.name } })
    kubernetes.events.record({
      object: claim,
      type: 'Warning',
      reason: 'UnregisteredTaintMissing',
      message: `Node ${node.metadata.name} joined without taint karpenter.sh/unregistered:NoExecute; pods may have been bound before its taints were complete`,
      dedupe: [claim.metadata.uid ?? ''],
    })
  }

  #reportRegistered(claim: NodeClaim, node: Node): void {
    const { claimJournal, metrics, logger, state } = this.#deps
    const fields = {
      NodeClaim: { name: claim.metadata.name },
      Node: { name: node.metadata.name },
      'provider-id': claim.status?.providerID,
    }
    if (wasRegistered(claim)) {
      logger.info('registered nodeclaim again', fields)
      return
    }
    state.registrationHealth.record(claim)
    claimJournal.registered(claim, node.metadata.name)
    metrics.nodesCreated.inc({
      nodepool: claim.metadata.labels?.[labels.nodePool] ?? '',
      zone: claim.metadata.labels?.[labels.zone] ?? '',
    })
    logger.info('registered nodeclaim', fields)
  }
}

/**
 * Taints that Nodes had before their registration, by Node UID. An agent may remove a startup taint before the Node is
 * registered; it must not be added again. From registration on, the owner reference of the Node shows the same.
 */
class SeenTaints {
  readonly #byNode = new Map<string, readonly Taint[]>()

  constructor(nodes: Cache<Node>) {
    nodes.onChange(({ kind, object }) => {
      const { uid = '', ownerReferences = [] } = object.metadata
      const hasOwner = ownerReferences.some((owner) => owner.kind === karpenterKinds.nodeClaim.kind)
      if (kind === 'deleted' || hasOwner) this.#byNode.delete(uid)
      else this.#see(uid, object.spec?.taints)
    })
  }

  #see(uid: string, taints: unknown): void {
    if (!Array.isArray(taints)) return
    const known = this.#byNode.get(uid) ?? []
    const added = (taints as readonly Taint[]).filter(
      (taint) => !known.some((each) => sameTaint(each, taint)),
    )
    if (added.length > 0) this.#byNode.set(uid, [...known, ...added])
  }

  has({ metadata: { uid = '' } }: Node, taint: Taint): boolean {
    return this.#byNode.get(uid)?.some((each) => sameTaint(each, taint)) === true
  }
}

function withLabels(claim: NodeClaim, added: Readonly<Record<string, string>>): NodeClaim {
  return { ...claim, metadata: { ...claim.metadata, labels: { ...claim.metadata.labels, ...added } } }
}

function withCondition(
  draft: ClaimDraft,
  status: 'Unknown' | 'False',
  reason: string,
  message: string,
  nowMs: number,
): StageResult & { readonly kind: 'continue' } {
  const conditions = draft.conditions.set({ type: 'Registered', status, reason, message }, nowMs)
  return { kind: 'continue', draft: { ...draft, conditions } }
}

function pendingHooks(
  draft: ClaimDraft,
  { error, pending, retryAfterMs }: HookOutcome,
  nowMs: number,
): StageResult {
  return {
    ...withCondition(draft, 'Unknown', 'RegistrationHookPending', pending.join(', '), nowMs),
    ...(retryAfterMs === undefined ? { isBackingOff: true } : { requeueMs: retryAfterMs }),
    ...(error !== undefined && { error }),
  }
}

const hasStartupTaints = ({ spec }: NodeClaim): boolean => (spec.startupTaints ?? []).length > 0

function isMissingTaint(node: Node): boolean {
  const isRegistered = node.metadata.labels?.[labels.registered] !== undefined
  return !isRegistered && !(node.spec?.taints ?? []).some((taint) => sameTaint(taint, unregisteredTaint))
}

/** The Node without the unregistered taint, which kept pods away. */
function opened(node: Node): Node {
  const taints = (node.spec?.taints ?? []).filter((taint) => !sameTaint(taint, unregisteredTaint))
  return withLabel({ ...node, spec: { ...node.spec, taints } }, labels.registered)
}

function withLabel(node: Node, label: string): Node {
  const { metadata } = node
  return { ...node, metadata: { ...metadata, labels: { ...metadata.labels, [label]: 'true' } } }
}

/** The Node with labels, annotations, taints, finalizer and owner from its claim. */
function syncedNode(
  node: Node,
  claim: NodeClaim,
  seenTaints: SeenTaints,
  claimAnnotations: readonly string[] = [],
): Node {
  const { metadata } = node
  const isSyncingTaints = metadata.labels?.[labels.doNotSyncTaints] !== 'true'
  const present = node.spec?.taints ?? []
  // Startup taints are added with the owner, in one write. Those that are missing later, or that the Node had before,
  // were removed by their agents.
  const hadStartup = isOwned(node, claim) || metadata.labels?.[labels.registered] === 'true'
  const startup = hadStartup
    ? []
    : (claim.spec.startupTaints ?? []).filter((taint) => !seenTaints.has(node, taint))
  const wanted = isSyncingTaints ? [...(claim.spec.taints ?? []), ...startup] : []
  const missing = wanted.filter(
    (taint, i) => ![...present, ...wanted.slice(0, i)].some((t) => sameTaint(t, taint)),
  )
  const taints = [...present, ...missing]
  return {
    ...node,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...claim.metadata.labels },
      annotations: { ...metadata.annotations, ...annotationsForNode(claim, claimAnnotations) },
      finalizers: [...new Set([...(metadata.finalizers ?? []), terminationFinalizer])],
      ownerReferences: withOwner(node, claim),
    },
    spec: { ...node.spec, taints },
  }
}

/** All but those about the claim alone: its trace, the pods that it was launched for, and those that the provider names. */
function annotationsForNode(
  { metadata }: NodeClaim,
  claimAnnotations: readonly string[],
): Readonly<Record<string, string>> {
  const own = new Set([plannedPodsAnnotation, ...claimTraceAnnotations, ...claimAnnotations])
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !own.has(key)))
}

function isOwned({ metadata }: Node, claim: NodeClaim): boolean {
  const type = karpenterKinds.nodeClaim
  return (metadata.ownerReferences ?? []).some(
    (owner) =>
      owner.apiVersion === apiVersionOf(type) &&
      owner.kind === type.kind &&
      owner.uid === (claim.metadata.uid ?? ''),
  )
}

function withOwner(node: Node, claim: NodeClaim): NonNullable<Node['metadata']['ownerReferences']> {
  const owners = node.metadata.ownerReferences ?? []
  if (isOwned(node, claim)) return owners
  const type = karpenterKinds.nodeClaim
  const { name, uid = '' } = claim.metadata
  return [...owners, { apiVersion: apiVersionOf(type), kind: type.kind, name, uid, blockOwnerDeletion: true }]
}
