/** The second stage: the claim's Node has appeared and gets its labels and taints (lifecycle.md 3.2). */
import type { Clock, Logger } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import {
  apiVersionOf,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  sameTaint,
  terminationFinalizer,
  unregisteredTaint,
} from '@tenon/api'
import { type EventRecorder, isKubeError, type KubeClient, type Lane, mergePatchOf } from '@tenon/kube'
import { type Caches, indexes } from '../../cluster/caches.ts'
import { plannedPodsAnnotation } from '../../placement/planned-pods.ts'
import type { RegistrationHold } from '../../placement/registration-hold.ts'
import type { ClaimDraft, StageResult } from './launch.ts'
import { isComplete } from './initialization.ts'
import { askHooks } from './registration-hooks.ts'
import { endReplaced, forgotten, standingOf, successorOf, wasRegistered } from './standing.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
}

/** Pause until the cache shows what the API server has told. */
const catchUpMs = 1000
/** Pause between two looks for the Node of a claim that has lost it. */
const absentPollMs = 10_000

/**
 * Takes the claim's Node under management, once every hook of the provider has passed and the scheduler
 * knows which pods the Node is for. A Node that was deleted and has registered again is taken over anew.
 */
export async function register(
  deps: Dependencies,
  draft: ClaimDraft,
  hold: RegistrationHold,
  signal: AbortSignal,
): Promise<StageResult> {
  const { conditions } = draft
  if (!conditions.isTrue('Registered')) return await takeOver(deps, draft, hold, signal)
  const standing = await standingOf(deps, draft.claim, conditions.isTrue('Initialized'))
  switch (standing.kind) {
    case 'holds': {
      const restamped = conditions.restamp('Registered', deps.clock.now())
      return { kind: 'continue', draft: { ...draft, conditions: restamped } }
    }
    case 'unseen':
      return { kind: 'continue', draft, requeueMs: catchUpMs, isLast: true }
    case 'replaced':
      await endReplaced(deps, draft.claim, standing.node)
      return { kind: 'deleted' }
    case 'lost':
      return await takeOver(deps, forgotten(deps, draft, standing), hold, signal)
  }
}

/** Takes the Node of a claim that has none under management, for the first time or anew. */
async function takeOver(
  deps: Dependencies,
  draft: ClaimDraft,
  hold: RegistrationHold,
  signal: AbortSignal,
): Promise<StageResult> {
  const { clock, caches, events, provider, logger } = deps
  const { claim, conditions } = draft
  const providerID = claim.status?.providerID ?? ''
  const nodes = providerID === '' ? [] : caches.nodes.byIndex(indexes.byProviderId, providerID)
  const [node, second] = nodes
  if (node === undefined) return await awaitNode(deps, draft)
  if (second !== undefined) {
    const names = nodes.map((each) => each.metadata.name).toSorted()
    const message = `Several Nodes carry provider ID ${providerID}: ${names.join(', ')}`
    return withCondition(draft, 'False', 'MultipleNodesFound', message, clock.now())
  }
  if (isMissingTaint(node)) {
    logger.warn('node joined without the unregistered taint', { Node: { name: node.metadata.name } })
    events.record({
      object: claim,
      type: 'Warning',
      reason: 'UnregisteredTaintMissing',
      message: `Node ${node.metadata.name} joined without taint karpenter.sh/unregistered:NoExecute; pods may have been bound before its taints were complete`,
      dedupe: [claim.metadata.uid ?? ''],
    })
  }
  const hooks = await askHooks(provider.registrationHooks ?? [], claim, signal)
  const isPending = hooks.pending.length > 0
  const holdMs = isPending ? 0 : hold.waitMs(claim)
  if (holdMs > 0) return { kind: 'continue', draft, requeueMs: holdMs }
  const taken = isPending ? claim : withLabels(claim, hooks.labels)
  const stored = await storeNode(
    deps,
    node,
    isPending ? syncedNode(node, taken) : initializedIfComplete(deps, registeredNode(node, taken), taken),
    // A pod that is tried between two of them slips onto the first.
    hold.isHolding(claim) ? 'together' : 'urgent',
  )
  if (stored === undefined)
    return { kind: 'continue', draft, requeueMs: hold.isHolding(claim) ? 100 : 1000, isLast: true }
  if (isPending) {
    const message = hooks.pending.join(', ')
    return {
      ...withCondition(draft, 'Unknown', 'RegistrationHookPending', message, clock.now()),
      ...(hooks.retryAfterMs === undefined ? { isBackingOff: true } : { requeueMs: hooks.retryAfterMs }),
      ...(hooks.error !== undefined && { error: hooks.error }),
    }
  }
  return {
    kind: 'continue',
    draft: {
      claim: { ...taken, status: { ...taken.status, nodeName: node.metadata.name } },
      conditions: conditions.set({ type: 'Registered', status: 'True' }, clock.now()),
      node: stored,
    },
    afterStore: () => {
      tellRegistered(deps, taken, node)
    },
  }
}

/** There is no Node with the claim's provider ID. */
async function awaitNode(deps: Dependencies, draft: ClaimDraft): Promise<StageResult> {
  const { claim } = draft
  const message = 'Node not registered with the cluster yet'
  const waiting = withCondition(draft, 'Unknown', 'NodeNotFound', message, deps.clock.now())
  if (!wasRegistered(claim)) return waiting
  const other = await successorOf(deps, claim)
  // Nothing wakes the claim for a Node of another instance.
  if (other === undefined) return { ...waiting, requeueMs: absentPollMs }
  await endReplaced(deps, claim, other)
  return { kind: 'deleted' }
}

/** The Node of a claim that was registered before is not one more. */
function tellRegistered({ metrics, logger, state }: Dependencies, claim: NodeClaim, node: Node): void {
  if (wasRegistered(claim)) {
    logger.info('registered nodeclaim anew', {
      NodeClaim: { name: claim.metadata.name },
      Node: { name: node.metadata.name },
      'provider-id': claim.status?.providerID,
    })
    return
  }
  state.registrationHealth.record(claim)
  metrics.nodesCreated.inc({
    nodepool: claim.metadata.labels?.[labels.nodePool] ?? '',
    zone: claim.metadata.labels?.[labels.zone] ?? '',
  })
  logger.info('registered nodeclaim', {
    NodeClaim: { name: claim.metadata.name },
    Node: { name: node.metadata.name },
    'provider-id': claim.status?.providerID,
  })
}

/** @returns the Node as it stands then; undefined when it has changed or gone meanwhile. */
async function storeNode(
  { client }: Dependencies,
  before: Node,
  after: Node,
  lane: Lane,
): Promise<Node | undefined> {
  const patch = mergePatchOf(before, after)
  if (patch === undefined) return before
  const { name, resourceVersion } = before.metadata
  try {
    return await client.patch(kinds.node, { name }, patch, {
      lane,
      ...(resourceVersion !== undefined && { resourceVersion }),
    })
  } catch (error) {
    if (isKubeError(error, 'conflict', 'notFound')) return undefined
    throw error
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

function isMissingTaint(node: Node): boolean {
  const isRegistered = node.metadata.labels?.[labels.registered] !== undefined
  return !isRegistered && !(node.spec?.taints ?? []).some((taint) => sameTaint(taint, unregisteredTaint))
}

/** The synced Node, open for pods. */
function registeredNode(node: Node, claim: NodeClaim): Node {
  const synced = syncedNode(node, claim)
  const { labels: present, ...metadata } = synced.metadata
  return {
    ...synced,
    metadata: { ...metadata, labels: { ...present, [labels.registered]: 'true' } },
    spec: {
      ...synced.spec,
      taints: (synced.spec?.taints ?? []).filter((taint) => !sameTaint(taint, unregisteredTaint)),
    },
  }
}

/** One write instead of two: many Nodes open at one moment, and each write between them lets pods slip. */
function initializedIfComplete(deps: Dependencies, node: Node, claim: NodeClaim): Node {
  if (!isComplete(deps, node, claim)) return node
  const { metadata } = node
  return { ...node, metadata: { ...metadata, labels: { ...metadata.labels, [labels.initialized]: 'true' } } }
}

/** The Node with everything the claim wants of it. */
function syncedNode(node: Node, claim: NodeClaim): Node {
  const { metadata } = node
  const isSyncingTaints = metadata.labels?.[labels.doNotSyncTaints] !== 'true'
  const present = node.spec?.taints ?? []
  // Startup taints came with the owner, in one write: those that are missing now were taken off by their agents.
  const startup = isOwned(node, claim) ? [] : (claim.spec.startupTaints ?? [])
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
      annotations: { ...metadata.annotations, ...annotationsForNode(claim) },
      finalizers: [...new Set([...(metadata.finalizers ?? []), terminationFinalizer])],
      ownerReferences: withOwner(node, claim),
    },
    spec: { ...node.spec, taints },
  }
}

/** Which pods a claim was launched for is of no use on its Node. */
function annotationsForNode({ metadata }: NodeClaim): Readonly<Record<string, string>> {
  const { [plannedPodsAnnotation]: _, ...annotations } = metadata.annotations ?? {}
  return annotations
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
