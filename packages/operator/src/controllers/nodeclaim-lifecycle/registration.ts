/** The second stage: the claim's Node has appeared and gets its labels and taints (lifecycle.md 3.2). */
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
import { isKubeError, mergePatchOf } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'
import { indexes } from '../../observe/caches.ts'
import type { ClaimDraft, StageResult } from './launch.ts'

/** Takes the claim's Node under management. */
export async function register(context: OperatorContext, draft: ClaimDraft): Promise<StageResult> {
  const { clock, caches, events, client, metrics, logger } = context
  const { claim, conditions } = draft
  if (!conditions.isUnknown('Registered')) {
    return {
      kind: 'continue',
      draft: { ...draft, conditions: conditions.restamp('Registered', clock.now()) },
    }
  }
  const providerID = claim.status?.providerID ?? ''
  const nodes = providerID === '' ? [] : caches.nodes.byIndex(indexes.byProviderId, providerID)
  const [node, second] = nodes
  if (node === undefined) {
    return withCondition(
      draft,
      'Unknown',
      'NodeNotFound',
      'Node not registered with the cluster yet',
      clock.now(),
    )
  }
  if (second !== undefined) {
    const names = nodes.map((each) => each.metadata.name).toSorted()
    const message = `Several Nodes carry provider ID ${providerID}: ${names.join(', ')}`
    return withCondition(draft, 'False', 'MultipleNodesFound', message, clock.now())
  }
  if (isMissingTaint(node)) {
    logger.error('node joined without the unregistered taint', { Node: { name: node.metadata.name } })
    events.record({
      object: claim,
      type: 'Warning',
      reason: 'UnregisteredTaintMissing',
      message: `Node ${node.metadata.name} joined without taint karpenter.sh/unregistered:NoExecute; pods may have been bound before its taints were complete`,
      dedupe: [claim.metadata.uid ?? ''],
    })
  }
  const patch = mergePatchOf(node, registeredNode(node, claim))
  if (patch !== undefined) {
    try {
      await client.patch(kinds.node, { name: node.metadata.name }, patch, {
        ...(node.metadata.resourceVersion !== undefined && {
          resourceVersion: node.metadata.resourceVersion,
        }),
      })
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound'))
        return { kind: 'continue', draft, requeueMs: 1000, isLast: true }
      throw error
    }
  }
  metrics.nodesCreated.inc({
    nodepool: claim.metadata.labels?.[labels.nodePool] ?? '',
    zone: claim.metadata.labels?.[labels.zone] ?? '',
  })
  logger.info('registered nodeclaim', {
    NodeClaim: { name: claim.metadata.name },
    Node: { name: node.metadata.name },
    'provider-id': providerID,
  })
  return {
    kind: 'continue',
    draft: {
      claim: { ...claim, status: { ...claim.status, nodeName: node.metadata.name } },
      conditions: conditions.set({ type: 'Registered', status: 'True' }, clock.now()),
    },
  }
}

function withCondition(
  draft: ClaimDraft,
  status: 'Unknown' | 'False',
  reason: string,
  message: string,
  nowMs: number,
): StageResult {
  const conditions = draft.conditions.set({ type: 'Registered', status, reason, message }, nowMs)
  return { kind: 'continue', draft: { ...draft, conditions } }
}

function isMissingTaint(node: Node): boolean {
  const isRegistered = node.metadata.labels?.[labels.registered] !== undefined
  return !isRegistered && !(node.spec?.taints ?? []).some((taint) => sameTaint(taint, unregisteredTaint))
}

/** The Node with everything the claim wants of it, and without the unregistered taint. */
function registeredNode(node: Node, claim: NodeClaim): Node {
  const { metadata } = node
  const isSyncingTaints = metadata.labels?.[labels.doNotSyncTaints] !== 'true'
  const present = node.spec?.taints ?? []
  const wanted = isSyncingTaints ? [...(claim.spec.taints ?? []), ...(claim.spec.startupTaints ?? [])] : []
  const missing = wanted.filter(
    (taint, i) => ![...present, ...wanted.slice(0, i)].some((t) => sameTaint(t, taint)),
  )
  const taints = [...present, ...missing].filter((taint) => !sameTaint(taint, unregisteredTaint))
  return {
    ...node,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...claim.metadata.labels, [labels.registered]: 'true' },
      annotations: { ...metadata.annotations, ...claim.metadata.annotations },
      finalizers: [...new Set([...(metadata.finalizers ?? []), terminationFinalizer])],
      ownerReferences: withOwner(node, claim),
    },
    spec: { ...node.spec, taints },
  }
}

function withOwner(node: Node, claim: NodeClaim): NonNullable<Node['metadata']['ownerReferences']> {
  const owners = node.metadata.ownerReferences ?? []
  const type = karpenterKinds.nodeClaim
  const apiVersion = apiVersionOf(type)
  const uid = claim.metadata.uid ?? ''
  if (owners.some((o) => o.apiVersion === apiVersion && o.kind === type.kind && o.uid === uid)) return owners
  return [
    ...owners,
    { apiVersion, kind: type.kind, name: claim.metadata.name, uid, blockOwnerDeletion: true },
  ]
}
