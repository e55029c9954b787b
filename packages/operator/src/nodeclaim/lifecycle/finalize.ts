/** The end of a claim: its Node drained away, its instance gone, then the object (lifecycle.md 3.7). */
import {
  annotations,
  ConditionSet,
  isConditionTrue,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  parseDuration,
  sameTaint,
  terminationFinalizer,
  unregisteredTaint,
} from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { indexes } from '../../state/caches.ts'
import { transitionMs } from '../../state/nodes/state-node.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import { tellLaunchesPaused } from './liveness.ts'
import { wasRegistered } from './standing.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface FinalizeParts {
  readonly kubernetes: Kubernetes<'nodePools' | 'nodes'>
  readonly state: Pick<ClusterState, 'readinessPauses'>
  readonly provider: Pick<CloudProvider, 'delete' | 'get' | 'list' | 'ownsProviderID'>
  readonly metrics: Pick<Metrics, 'claimTermination' | 'instanceTermination' | 'nodeClaimsTerminated'>
  readonly clock: Clock
  readonly logger: Logger
  readonly claimJournal: ClaimJournal
}

const backoff: ReconcileResult = { kind: 'backoff' }
const terminatingPollMs = 5000

/** One step on the way of a claim that is being deleted: its Node drains, its instance goes, then the finalizer. */
export async function finalizeClaim(
  deps: FinalizeParts,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  if (!(claim.metadata.finalizers ?? []).includes(terminationFinalizer)) return done
  try {
    const stamped = await stampDeadline(deps, claim)
    if (await deletesNodes(deps, stamped)) return done
    const known = await withProviderID(deps, stamped, signal)
    let instanceSinceMs: number | undefined
    if (known !== undefined) {
      // Nothing tells of this Node's end that a claim with another provider ID would be woken by.
      if (known !== stamped && (await deletesNodes(deps, known)))
        return { kind: 'after', delayMs: terminatingPollMs }
      const end = await terminateInstance(deps, known, signal)
      if (end.kind === 'waits') return { kind: 'after', delayMs: terminatingPollMs }
      instanceSinceMs = end.sinceMs
    }
    // Counted once the removal is stored, so that a pass that has to be repeated counts nothing twice.
    if (await removesFinalizer(deps, claim)) {
      tellTerminated(deps, claim, instanceSinceMs)
      if (!isConditionTrue(claim, 'Initialized'))
        tellLaunchesPaused(
          deps.kubernetes,
          deps.state,
          claim,
          'Many instances of this NodePool in a row were gone before they took pods',
        )
    }
    return done
  } catch (error) {
    if (isKubeError(error, 'conflict')) return backoff
    if (isKubeError(error, 'notFound')) return done
    throw error
  }
}

/** Writes when the grace period ends, once; an existing value is kept. */
async function stampDeadline(deps: FinalizeParts, claim: NodeClaim): Promise<NodeClaim> {
  const grace = claim.spec.terminationGracePeriod
  const { metadata } = claim
  if (grace === undefined || metadata.annotations?.[annotations.terminationTimestamp] !== undefined)
    return claim
  const deadline = rfc3339(Date.parse(metadata.deletionTimestamp ?? '') + (parseDuration(grace) ?? 0))
  const patched = await deps.kubernetes.client.patch(
    karpenterKinds.nodeClaim,
    { name: metadata.name },
    { metadata: { annotations: { [annotations.terminationTimestamp]: deadline } } },
    metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion },
  )
  deps.kubernetes.events.record({
    object: claim,
    type: 'Warning',
    reason: 'TerminationGracePeriodExpiring',
    message: `All pods will be deleted by ${deadline}`,
    dedupe: [metadata.name],
  })
  return patched
}

/** @returns whether there still is a Node to wait for. */
async function deletesNodes(deps: FinalizeParts, claim: NodeClaim): Promise<boolean> {
  const providerID = claim.status?.providerID ?? ''
  if (providerID === '') return false
  // A Node that is open may hold pods, although nobody could store yet that its claim is registered.
  const known = deps.kubernetes.caches.nodes.byIndex(indexes.byProviderId, providerID)
  const nodes = (known.length > 0 ? known : await unseenNodes(deps, claim, providerID)).filter(
    (node) => wasRegistered(claim) || isConditionTrue(claim, 'Registered') || isOpen(node),
  )
  for (const node of nodes) {
    if (node.metadata.deletionTimestamp !== undefined) continue
    await keepUntilDrained(deps, node, claim)
    try {
      await deps.kubernetes.client.delete(kinds.node, { name: node.metadata.name })
      deps.logger.info('deleted node', { Node: { name: node.metadata.name } })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
  return nodes.length > 0
}

/** The Node of a registered claim, when the cache does not show it yet: it may have registered again just now. */
async function unseenNodes(
  { kubernetes: { client } }: FinalizeParts,
  claim: NodeClaim,
  providerID: string,
): Promise<readonly Node[]> {
  if (!wasRegistered(claim)) return []
  const node = await client.get(kinds.node, { name: claim.status?.nodeName ?? '' })
  return node?.spec?.providerID === providerID ? [node] : []
}

/** A kubelet that joined before its instance was known to be launched brings no taint that keeps pods away. */
function isOpen({ metadata, spec }: Node): boolean {
  const isClosed = (spec?.taints ?? []).some((taint) => sameTaint(taint, unregisteredTaint))
  return metadata.labels?.[labels.registered] === 'true' || !isClosed
}

/** A Node that has registered again lacks what makes its deletion wait for its drain, and what tells whose it is. */
async function keepUntilDrained(
  { kubernetes: { client } }: FinalizeParts,
  node: Node,
  claim: NodeClaim,
): Promise<void> {
  const { name, finalizers = [], resourceVersion } = node.metadata
  if (finalizers.includes(terminationFinalizer)) return
  await client.patch(
    kinds.node,
    { name },
    {
      metadata: {
        finalizers: [...finalizers, terminationFinalizer],
        labels: { ...claim.metadata.labels, ...node.metadata.labels },
      },
    },
    resourceVersion === undefined ? {} : { resourceVersion },
  )
}

/** How the end of an instance stands; `gone` once the cloud no longer knows it. */
type InstanceEnd =
  | { readonly kind: 'waits' }
  /** `sinceMs`: when its end began, in Unix milliseconds; undefined when nobody noted that. */
  | { readonly kind: 'gone'; readonly sinceMs: number | undefined }

async function terminateInstance(
  deps: FinalizeParts,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<InstanceEnd> {
  const isGone = await deletesInstance(deps.provider, claim, signal)
  const marked = await markTerminating(deps, claim)
  return isGone ? { kind: 'gone', sinceMs: transitionMs(marked, 'InstanceTerminating') } : { kind: 'waits' }
}

/**
 * The claim with its instance; undefined when it has none. A crash between launch and the status write leaves an instance
 * that only the cloud's own tags tie to the claim, and so does a provider ID that is none: it must not outlive it.
 */
async function withProviderID(
  deps: FinalizeParts,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<NodeClaim | undefined> {
  if (deps.provider.ownsProviderID(claim.status?.providerID ?? '')) return claim
  const instances = await deps.provider.list(signal)
  const own = instances.find((instance) => instance.nodeClaimName === claim.metadata.name)
  return own === undefined ? undefined : { ...claim, status: { ...claim.status, providerID: own.providerID } }
}

/**
 * Asks the cloud to delete the instance.
 * @returns whether the instance is gone: the cloud says so of the deletion, and again when it is asked for the one
 * instance, as a finalizer goes for it.
 */
export async function deletesInstance(
  provider: Pick<CloudProvider, 'delete' | 'get' | 'ownsProviderID'>,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await provider.delete(claim, signal)
    return false
  } catch (error) {
    if (!isProviderError(error, 'nodeClaimNotFound')) throw error
  }
  const providerID = claim.status?.providerID ?? ''
  return !provider.ownsProviderID(providerID) || (await isInstanceGone(provider, providerID, signal))
}

/** Whether the cloud, asked for this one instance, does not know it. */
export async function isInstanceGone(
  provider: Pick<CloudProvider, 'get'>,
  providerID: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await provider.get(providerID, signal)
    return false
  } catch (error) {
    if (isProviderError(error, 'nodeClaimNotFound')) return true
    throw error
  }
}

/** Sets `InstanceTerminating`, which tells the rest of the core that the instance is as good as gone. */
async function markTerminating(deps: FinalizeParts, claim: NodeClaim): Promise<NodeClaim> {
  const before = ConditionSet.of(claim, nodeClaimConditions)
  const after = before.set({ type: 'InstanceTerminating', status: 'True' }, deps.clock.now())
  if (before === after) return claim
  return await deps.kubernetes.client.patch(
    karpenterKinds.nodeClaim,
    { name: claim.metadata.name },
    { status: { conditions: after.conditions } },
    {
      subresource: 'status',
      ...(claim.metadata.resourceVersion !== undefined && {
        resourceVersion: claim.metadata.resourceVersion,
      }),
    },
  )
}

/** @returns whether this call removed it. */
async function removesFinalizer(deps: FinalizeParts, claim: NodeClaim): Promise<boolean> {
  const current = await deps.kubernetes.client.get(karpenterKinds.nodeClaim, { name: claim.metadata.name })
  if (current === undefined || current.metadata.uid !== claim.metadata.uid) return false
  const before = current.metadata.finalizers ?? []
  // The cache may show the claim as it was before an earlier pass, for as long as another finalizer holds it.
  if (!before.includes(terminationFinalizer)) return false
  const finalizers = before.filter((name) => name !== terminationFinalizer)
  await deps.kubernetes.client.patch(
    karpenterKinds.nodeClaim,
    { name: claim.metadata.name },
    { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } },
    { resourceVersion: current.metadata.resourceVersion ?? '' },
  )
  return true
}

function tellTerminated(
  { claimJournal, clock, logger, metrics }: FinalizeParts,
  claim: NodeClaim,
  instanceSinceMs: number | undefined,
): void {
  claimJournal.gone(claim)
  const tags = claim.metadata.labels ?? {}
  const nodepool = tags[labels.nodePool] ?? ''
  const secondsSince = (ms: number) => Math.max(0, clock.now() - ms) / 1000
  if (instanceSinceMs !== undefined)
    metrics.instanceTermination.observe({ nodepool }, secondsSince(instanceSinceMs))
  metrics.claimTermination.observe(
    { nodepool },
    secondsSince(Date.parse(claim.metadata.deletionTimestamp ?? '')),
  )
  metrics.nodeClaimsTerminated.inc({
    nodepool,
    capacity_type: tags[labels.capacityType] ?? '',
    zone: tags[labels.zone] ?? '',
  })
  logger.info('deleted nodeclaim', {
    NodeClaim: { name: claim.metadata.name },
    'provider-id': claim.status?.providerID,
  })
}
