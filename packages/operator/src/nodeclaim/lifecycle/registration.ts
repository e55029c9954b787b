/** The second stage: the claim's Node has appeared and gets its labels and taints (lifecycle.md 3.2). */
import type { Clock, Listeners } from '@tenon/runtime'
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
import { isKubeError, type Lane, mergePatchOf } from '@tenon/kube'
import { indexes } from '../../state/caches.ts'
import { plannedPodsAnnotation } from '../../state/pods/pod-plans.ts'
import { isComplete } from './initialization.ts'
import { askHooks } from './registration-hooks.ts'
import type { SeenTaints } from './seen-taints.ts'
import type { TwinRemoval } from './twin-removal.ts'
import { ownNode, twinText } from '../../state/nodes/state-node.ts'
import type { RegistrationReport } from './registration-report.ts'
import type { ClaimDraft, LifecycleStage, StageResult } from './stage.ts'
import {
  endReplaced,
  forgetNode,
  type StandingParts,
  standingOf,
  successorOf,
  wasRegistered,
} from './standing.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Kubernetes } from '../../kubernetes.ts'

/** Keeps a new node closed to pods, such as until the scheduler knows which pods it is for. */
export interface OpeningHold {
  /** Claims to ask for again after so long, or earlier. */
  readonly due: Listeners<{ readonly name: string; readonly afterMs: number }>
  /** Milliseconds after which to ask again; 0 once the claim's Node may open. */
  waitMs(claim: NodeClaim): number
}

/** The holds of all who have a say. */
interface OpeningHolds extends OpeningHold {
  /** Whether others are being waited for, or were until now, so that this Node should not lag behind. */
  isHolding(claim: NodeClaim): boolean
}

interface RegistrationParts extends StandingParts {
  readonly kubernetes: Kubernetes<'nodes' | 'resourceSlices'>
  readonly provider: Pick<CloudProvider, 'claimAnnotations' | 'ownsProviderID' | 'registrationHooks'>
  readonly state: Pick<ClusterState, 'taintsOfCloud'>
  readonly clock: Clock
  readonly hold: OpeningHolds
  readonly report: RegistrationReport
  readonly seenTaints: SeenTaints
  readonly twins: TwinRemoval
}

/** Pause between two looks for the Node of a claim that has lost it. */
const absentPollMs = 10_000

/**
 * Takes the claim's Node under management, once every hook of the provider has passed and the scheduler
 * knows which pods the Node is for. A Node that was deleted and has registered again is taken over anew.
 */
export function registration(parts: RegistrationParts): LifecycleStage {
  return { due: parts.hold.due, run: (draft, signal) => register(parts, draft, signal) }
}

async function register(
  deps: RegistrationParts,
  draft: ClaimDraft,
  signal: AbortSignal,
): Promise<StageResult> {
  const { conditions } = draft
  if (!conditions.isTrue('Registered')) return await takeOver(deps, draft, signal)
  const standing = await standingOf(deps, draft.claim, conditions.isTrue('Initialized'))
  switch (standing.kind) {
    case 'holds': {
      const restamped = conditions.restamp('Registered', deps.clock.now())
      const twins = await deps.twins.look(draft.claim, signal)
      if (twins === 'ended') return { kind: 'deleted' }
      return {
        kind: 'continue',
        draft: { ...draft, conditions: restamped },
        ...(twins !== 'alone' && { requeueMs: twins.againMs }),
      }
    }
    case 'unseen':
      return { kind: 'continue', draft, isBackingOff: true, isLast: true }
    case 'replaced':
      await endReplaced(deps, draft.claim, standing.node)
      return { kind: 'deleted' }
    case 'lost':
      return await takeOver(deps, forgetNode(deps, draft, standing), signal)
  }
}

/** Takes the Node of a claim that has none under management, for the first time or anew. */
async function takeOver(
  deps: RegistrationParts,
  draft: ClaimDraft,
  signal: AbortSignal,
): Promise<StageResult> {
  const { clock, hold, kubernetes, provider, report, seenTaints } = deps
  const { claim, conditions } = draft
  const providerID = claim.status?.providerID ?? ''
  const nodes = providerID === '' ? [] : kubernetes.caches.nodes.byIndex(indexes.byProviderId, providerID)
  if (nodes.length === 0) return await awaitNode(deps, draft)
  const node = ownNode(nodes, claim)
  if (node === undefined)
    return withCondition(draft, 'False', 'MultipleNodesFound', twinText(nodes, node), clock.now())
  if (isMissingTaint(node)) report.taintMissing(claim, node)
  const hooks = await askHooks(provider.registrationHooks ?? [], claim, signal)
  const isPending = hooks.pending.length > 0
  const holdMs = isPending ? 0 : hold.waitMs(claim)
  const taken = isPending || holdMs > 0 ? claim : withLabels(claim, hooks.labels)
  const synced = syncedNode(node, taken, seenTaints, provider.claimAnnotations)
  if (holdMs > 0) {
    // The owner tells the next process, too, that startup taints which are missing then were taken off.
    if (hasStartupTaints(claim)) await storeNode(deps, node, synced, 'urgent')
    return { kind: 'continue', draft, requeueMs: holdMs }
  }
  const stored = await storeNode(
    deps,
    node,
    isPending ? synced : initializedIfComplete(deps, opened(synced), taken),
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
      report.registered(taken, node)
    },
  }
}

/** There is no Node with the claim's provider ID. */
async function awaitNode(deps: RegistrationParts, draft: ClaimDraft): Promise<StageResult> {
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

/** @returns the Node as it stands then; undefined when it has changed or gone meanwhile. */
async function storeNode(
  { kubernetes: { client } }: RegistrationParts,
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

const hasStartupTaints = ({ spec }: NodeClaim): boolean => (spec.startupTaints ?? []).length > 0

function isMissingTaint(node: Node): boolean {
  const isRegistered = node.metadata.labels?.[labels.registered] !== undefined
  return !isRegistered && !(node.spec?.taints ?? []).some((taint) => sameTaint(taint, unregisteredTaint))
}

/** The synced Node, open for pods. */
function opened(synced: Node): Node {
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
function initializedIfComplete(deps: RegistrationParts, node: Node, claim: NodeClaim): Node {
  if (!isComplete({ caches: deps.kubernetes.caches, state: deps.state }, node, claim)) return node
  const { metadata } = node
  return { ...node, metadata: { ...metadata, labels: { ...metadata.labels, [labels.initialized]: 'true' } } }
}

/** The Node with everything the claim wants of it. */
function syncedNode(
  node: Node,
  claim: NodeClaim,
  seenTaints: SeenTaints,
  claimAnnotations: readonly string[] = [],
): Node {
  const { metadata } = node
  const isSyncingTaints = metadata.labels?.[labels.doNotSyncTaints] !== 'true'
  const present = node.spec?.taints ?? []
  // Startup taints came with the owner, in one write: those that are missing now were taken off by their agents, as
  // were those that the Node had before.
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

/** Without those that say something of the claim alone: which pods it was launched for, and what the provider names. */
function annotationsForNode(
  { metadata }: NodeClaim,
  claimAnnotations: readonly string[],
): Readonly<Record<string, string>> {
  const own = new Set([plannedPodsAnnotation, ...claimAnnotations])
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
