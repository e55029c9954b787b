/** Reads off the caches which Nodes are being drained, and where each drain stands. */
import {
  type Node,
  type NodeClass,
  nodeClassLabel,
  type ResourceType,
  terminationFinalizer,
  ownValue,
} from '@tenon/api'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { deadlineMsOf } from '../../state/nodes/state-node.ts'
import { BudgetIndex } from './budget-index.ts'
import { isDrainable } from './drain.ts'
import { type DrainReport, drainReport } from './drain-report.ts'
import { pendingVolumes } from './volumes.ts'

/** Whether the Node is ours, and goes once it is drained. */
export function isTerminatingNode(node: Node, nodeClasses: readonly ResourceType<NodeClass>[]): boolean {
  return (
    node.metadata.deletionTimestamp !== undefined &&
    nodeClasses.some((type) => ownValue(node.metadata.labels, nodeClassLabel(type)) !== undefined) &&
    (node.metadata.finalizers ?? []).includes(terminationFinalizer)
  )
}

/** Every drain under way, by name of the Node. */
export function drainReports(
  {
    caches,
    state,
  }: {
    readonly caches: Pick<
      Caches,
      'nodes' | 'persistentVolumeClaims' | 'podDisruptionBudgets' | 'volumeAttachments'
    >
    readonly state: Pick<ClusterState, 'claimOf' | 'podsOn'>
  },
  nodeClasses: readonly ResourceType<NodeClass>[],
  nowMs: number,
): readonly DrainReport[] {
  const budgets = new BudgetIndex(caches.podDisruptionBudgets.list())
  return caches.nodes
    .list()
    .filter((node) => isTerminatingNode(node, nodeClasses))
    .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
    .map((node) => {
      const { name, deletionTimestamp = '' } = node.metadata
      const claim = state.claimOf(node)
      const pods = state.podsOn(name)
      const staying = pods.filter((pod) => !isDrainable(pod, nowMs))
      const facts = {
        node: name,
        ...(claim !== undefined && { nodeClaim: claim.metadata.name }),
        since: deletionTimestamp,
        deadlineMs: deadlineMsOf(claim),
        pods,
        budgets,
        pendingVolumes: pendingVolumes(caches, name, staying),
      }
      return drainReport(facts, nowMs)
    })
}
