/** Which kinds have metrics and events of their conditions, and with which labels (operations.md 9.3). */
import {
  type Condition,
  type ConditionSchema,
  ConditionSet,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  nodeClassLabel,
  type NodePool,
} from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import { SharedConditionMetrics } from './status-conditions.ts'
import { nodeClaimConditions, nodePoolConditions } from '../../nodeclaim/lifecycle/conditions.ts'
import { StatusConditions } from './controller.ts'

type StatusController = Pick<StatusConditions<KubeObject>, 'follow' | 'reconcile'>

/** What tells of the conditions of each kind, by the name of its controller. */
type StatusControllers = ReadonlyMap<string, StatusController>

export function statusControllers(context: OperatorContext): StatusControllers {
  const { caches, clock, events, provider, settings } = context
  const { registry } = context.metrics
  const common = { registry, events, clock, detail: settings.metricsDetail }
  const shared = new SharedConditionMetrics(common)
  const { group } = karpenterKinds.nodeClaim
  const ofClaim = [...provider.nodeClasses.map(nodeClassLabel), labels.nodePool]
  const nodeClaims = new StatusConditions({
    ...common,
    cache: caches.nodeClaims,
    labels: { group, kind: karpenterKinds.nodeClaim.kind, objectLabels: ofClaim },
    conditionsOf: (claim) => withMissing(claim, nodeClaimConditions),
    shared,
  })
  const nodePools = new StatusConditions({
    ...common,
    cache: caches.nodePools,
    labels: { group, kind: karpenterKinds.nodePool.kind, objectLabels: [] },
    conditionsOf: (pool) => withMissing(pool, nodePoolConditions),
    shared,
  })
  const nodes = new StatusConditions({
    ...common,
    cache: caches.nodes,
    labels: { group: '', kind: kinds.node.kind, objectLabels: [...ofClaim, labels.initialized] },
    conditionsOf: storedConditions,
  })
  return new Map<string, StatusController>([
    ['operatorpkg.nodeclaim.status', nodeClaims],
    ['operatorpkg.nodepool.status', nodePools],
    ['operatorpkg.node.status', nodes],
  ])
}

/** Stored conditions, and those that the kind always has as Unknown. */
function withMissing(object: NodeClaim | NodePool, schema: ConditionSchema): readonly Condition[] {
  const stored = object.status?.conditions ?? []
  if (!Array.isArray(stored)) return []
  return ConditionSet.of(object, schema).conditions
}

function storedConditions(node: Node): readonly Condition[] {
  return (node.status?.conditions ?? []) as readonly Condition[]
}
