/** Which kinds have metrics and events of their conditions, and with which labels (operations.md 9.3). */
import type { Clock } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import {
  autoscalingKinds,
  type Condition,
  type ConditionSchema,
  ConditionSet,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  nodeClassLabel,
  type NodePool,
} from '@tenon/api'
import { SharedConditionMetrics } from './status-conditions.ts'
import { nodeClaimConditions, nodePoolConditions } from '../../state/conditions.ts'
import type { ControllerSpec } from '../../controller.ts'
import { StatusConditions } from './controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { Metrics } from '../metrics.ts'
import type { Settings } from '../../settings.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'buffers' | 'nodeClaims' | 'nodePools' | 'nodes'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'registry'>
  readonly clock: Clock
  readonly settings: Pick<Settings, 'clusterStateObservability' | 'metricsDetail'>
}

/** What tells of the conditions of each kind; nothing without the setting. */
export function statusControllers(deps: Dependencies): readonly ControllerSpec[] {
  const { caches, clock, events, provider, settings } = deps
  if (!settings.clusterStateObservability) return []
  const { registry } = deps.metrics
  const common = { registry, events, clock, detail: settings.metricsDetail }
  const shared = new SharedConditionMetrics(common)
  const { group } = karpenterKinds.nodeClaim
  const ofClaim = [...provider.nodeClasses.map(nodeClassLabel), labels.nodePool]
  const nodeClaims = new StatusConditions({
    ...common,
    name: 'operatorpkg.nodeclaim.status',
    cache: caches.nodeClaims,
    labels: { group, kind: karpenterKinds.nodeClaim.kind, objectLabels: ofClaim },
    conditionsOf: (claim) => withMissing(claim, nodeClaimConditions),
    shared,
  })
  const nodePools = new StatusConditions({
    ...common,
    name: 'operatorpkg.nodepool.status',
    cache: caches.nodePools,
    labels: { group, kind: karpenterKinds.nodePool.kind, objectLabels: [] },
    conditionsOf: (pool) => withMissing(pool, nodePoolConditions),
    shared,
  })
  const nodes = new StatusConditions({
    ...common,
    name: 'operatorpkg.node.status',
    cache: caches.nodes,
    labels: { group: '', kind: kinds.node.kind, objectLabels: [...ofClaim, labels.initialized] },
    conditionsOf: storedConditions,
  })
  if (caches.buffers === undefined) return [nodeClaims, nodePools, nodes]
  const { capacityBuffer } = autoscalingKinds
  const buffers = new StatusConditions({
    ...common,
    name: 'operatorpkg.capacitybuffer.status',
    cache: caches.buffers.capacityBuffers,
    labels: { group: capacityBuffer.group, kind: capacityBuffer.kind, objectLabels: [] },
    conditionsOf: ({ status }) => status?.conditions ?? [],
    shared,
  })
  return [nodeClaims, nodePools, nodes, buffers]
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
