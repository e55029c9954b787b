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
import { reportPausedLaunches } from './liveness.ts'
import { wasRegistered } from './standing.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly claimJournal: ClaimJournal
}

const backoff: ReconcileResult = { kind: 'backoff' }
const terminatingPollMs = 5000

/** Takes the next step to delete a claim: its Node drains, its instance is deleted, then its finalizer (lifecycle.md 3.7). */
export async function finalizeClaim(
  deps: Dependencies,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { kubernetes, logger, provider, state } = deps
  if (!(claim.metadata.finalizers ?? []).includes(terminationFinalizer)) return done
  try {
    const stamped = await stampDeadline(kubernetes, claim)
    if (await deletesNodes(kubernetes, logger, stamped)) return done
    const launched = await withProviderID(provider, stamped, signal)
    let terminatingMs: number | undefined
    if (launched !== undefined) {
      // The cache does not wake this claim when a Node of another provider ID is gone.
      if (launched !== stamped && (await deletesNodes(kubernetes, logger, launched)))
        return { kind: 'after', delayMs: terminatingPollMs }
      const instance = await terminateInstance(deps, launched, signal)
      if (instance.kind === 'terminating') return { kind: 'after', delayMs: terminatingPollMs }
      terminatingMs = instance.sinceMs
    }
    // Counted only after the removal is stored, so that a repeated pass counts nothing twice.
    if (await removesFinalizer(kubernetes, claim)) {
      reportTerminated(deps, claim, terminatingMs)
      if (!isConditionTrue(claim, 'Initialized'))
        reportPausedLaunches(
          kubernetes,
          state,
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

/** Writes when the grace period ends, once. */
async function stampDeadline({ client, events }: Kubernetes, claim: NodeClaim): Promise<NodeClaim> {
  const grace = claim.spec.terminationGracePeriod
  const { metadata } = claim
  if (grace === undefined || metadata.annotations?.[annotations.terminationTimestamp] !== undefined)
    return claim
  const deadline = rfc3339(Date.parse(metadata.deletionTimestamp ?? '') + (parseDuration(grace) ?? 0))
  const patched = await client.patch(
    karpenterKinds.nodeClaim,
    { name: metadata.name },
    { metadata: { annotations: { [annotations.terminationTimestamp]: deadline } } },
    metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion },
  )
  events.record({
    object: claim,
    type: 'Warning',
    reason: 'TerminationGracePeriodExpiring',
    message: `All pods will be deleted by ${deadline}`,
    dedupe: [metadata.name],
  })
  return patched
}

/** Deletes the claim's Nodes, which drains them. @returns whether there is one to wait for. */
async function deletesNodes(kubernetes: Kubernetes, logger: Logger, claim: NodeClaim): Promise<boolean> {
  const { caches, client } = kubernetes
  const providerID = claim.status?.providerID ?? ''
  if (providerID === '') return false
  // An open Node may hold pods even if its claim could not be stored as registered.
  const known = caches.nodes.byIndex(indexes.byProviderId, providerID)
  const nodes = (known.length > 0 ? known : await unseenNodes(kubernetes, claim, providerID)).filter(
    (node) => wasRegistered(claim) || isConditionTrue(claim, 'Registered') || isOpen(node),
  )
  for (const node of nodes) {
    if (node.metadata.deletionTimestamp !== undefined) continue
    await keepUntilDrained(kubernetes, node, claim)
    try {
      await client.delete(kinds.node, { name: node.metadata.name })
      logger.info('deleted node', { Node: { name: node.metadata.name } })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
  return nodes.length > 0
}

/** The Node of a registered claim that the cache does not show: it may have just registered again. */
async function unseenNodes(
  { client }: Kubernetes,
  claim: NodeClaim,
  providerID: string,
): Promise<readonly Node[]> {
  if (!wasRegistered(claim)) return []
  const node = await client.get(kinds.node, { name: claim.status?.nodeName ?? '' })
  return node?.spec?.providerID === providerID ? [node] : []
}

/** Whether pods may run on the Node. A kubelet may join without the unregistered taint. */
function isOpen({ metadata, spec }: Node): boolean {
  const isClosed = (spec?.taints ?? []).some((taint) => sameTaint(taint, unregisteredTaint))
  return metadata.labels?.[labels.registered] === 'true' || !isClosed
}

/** Adds the finalizer and labels to a Node that lost them by registering again; without them it would not be drained. */
async function keepUntilDrained({ client }: Kubernetes, node: Node, claim: NodeClaim): Promise<void> {
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

/**
 * The claim with the ID of its instance; undefined if it has no instance. After a crash between launch and status write,
 * only the tags in the cloud say which claim an instance belongs to. It must not outlive the claim.
 */
async function withProviderID(
  provider: CloudProvider,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<NodeClaim | undefined> {
  if (provider.ownsProviderID(claim.status?.providerID ?? '')) return claim
  const instances = await provider.list(signal)
  const own = instances.find((instance) => instance.nodeClaimName === claim.metadata.name)
  return own === undefined ? undefined : { ...claim, status: { ...claim.status, providerID: own.providerID } }
}

/** Deletes the instance. `sinceMs`: when that began, in Unix milliseconds; undefined if unknown. */
async function terminateInstance(
  { clock, kubernetes, provider }: Dependencies,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<
  { readonly kind: 'terminating' } | { readonly kind: 'gone'; readonly sinceMs: number | undefined }
> {
  const isGone = await deletesInstance(provider, claim, signal)
  const marked = await markTerminating(kubernetes, claim, clock.now())
  return isGone
    ? { kind: 'gone', sinceMs: transitionMs(marked, 'InstanceTerminating') }
    : { kind: 'terminating' }
}

/**
 * Asks the cloud to delete the instance.
 * @returns whether it is gone. A finalizer is removed for that, so the cloud has to say it twice: of the deletion, and
 * when it is asked for the instance.
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

/** Sets condition InstanceTerminating: other controllers count the instance as gone. */
async function markTerminating({ client }: Kubernetes, claim: NodeClaim, nowMs: number): Promise<NodeClaim> {
  const before = ConditionSet.of(claim, nodeClaimConditions)
  const after = before.set({ type: 'InstanceTerminating', status: 'True' }, nowMs)
  if (before === after) return claim
  return await client.patch(
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
async function removesFinalizer({ client }: Kubernetes, claim: NodeClaim): Promise<boolean> {
  const current = await client.get(karpenterKinds.nodeClaim, { name: claim.metadata.name })
  if (current === undefined || current.metadata.uid !== claim.metadata.uid) return false
  const before = current.metadata.finalizers ?? []
  // An earlier pass removed it, and another finalizer keeps the claim.
  if (!before.includes(terminationFinalizer)) return false
  const finalizers = before.filter((name) => name !== terminationFinalizer)
  await client.patch(
    karpenterKinds.nodeClaim,
    { name: claim.metadata.name },
    { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } },
    { resourceVersion: current.metadata.resourceVersion ?? '' },
  )
  return true
}

function reportTerminated(
  { claimJournal, clock, logger, metrics }: Dependencies,
  claim: NodeClaim,
  terminatingMs: number | undefined,
): void {
  claimJournal.gone(claim)
  const tags = claim.metadata.labels ?? {}
  const nodepool = tags[labels.nodePool] ?? ''
  const secondsSince = (ms: number) => Math.max(0, clock.now() - ms) / 1000
  if (terminatingMs !== undefined)
    metrics.instanceTermination.observe({ nodepool }, secondsSince(terminatingMs))
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
