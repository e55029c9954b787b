/** The nodes of a snapshot as the parts of a report read them. */
import {
  isKnownPrice,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type Node,
  type NodePool,
  ownValue,
  type Pod,
} from '@tenon/api'
import { renderPodProblems, shapeProblems } from '@tenon/engine'
import { invalidObjectFields } from '@tenon/engine/objects'
import { isReschedulable, withoutNulls } from '@tenon/operator/objects'
import { ofKind, type PricedInstance, pricedInstances } from '../cost/priced.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { isControlPlane, nodeGroupOf, withNodePools } from './node-pools.ts'

export interface ReportedNode {
  readonly node: Node
  readonly instance: PricedInstance
  readonly pool: NodePool | undefined
  /** Pods that need another node when this one goes. */
  readonly pods: readonly Pod[]
}

export interface ReportedCluster {
  /** Objects with a field of another kind than the API promises, such as `Node n1 (spec must be a map)`; in no figure. */
  readonly unreadable: readonly string[]
  /** With NodePools, also where the cluster has none. */
  readonly snapshot: Snapshot
  /** Everything that is paid for; `nodePool` is the node group of nodes without a NodePool. */
  readonly instances: readonly PricedInstance[]
  readonly nodes: readonly ReportedNode[]
  /**
   * Nodes that no plan removes: those of unknown price, whose removal saves an unknown amount, of the control plane, of
   * static NodePools, being deleted already, and with room that CapacityBuffers keep.
   */
  readonly fixed: ReadonlySet<string>
}

export function reportedCluster(raw: Snapshot): ReportedCluster {
  const { given, unreadable } = readableObjects(raw)
  const snapshot = withNodePools(given)
  const nodes = ofKind(given, kinds.node)
  const groups = new Map(nodes.map((node) => [node.metadata.name, nodeGroupOf(node)]))
  const instances = pricedInstances(given).map((instance): PricedInstance => {
    const group = instance.nodePool ?? groups.get(instance.name)
    // A file may hold anything.
    const pricePerHour = isKnownPrice(instance.pricePerHour) ? instance.pricePerHour : undefined
    return { ...instance, pricePerHour, ...(group !== undefined && { nodePool: group }) }
  })
  const byName = new Map(instances.map((instance) => [instance.name, instance]))
  const pools = new Map(ofKind(given, karpenterKinds.nodePool).map((pool) => [pool.metadata.name, pool]))
  const podsOf = Map.groupBy(
    ofKind(given, kinds.pod).filter(isReschedulable),
    ({ spec }) => spec.nodeName ?? '',
  )
  const reported = nodes.flatMap((node): readonly ReportedNode[] => {
    const { name } = node.metadata
    const instance = byName.get(name)
    const pool = pools.get(ownValue(node.metadata.labels, labels.nodePool) ?? '')
    return instance === undefined ? [] : [{ node, instance, pool, pods: podsOf.get(name) ?? [] }]
  })
  const leaving = leavingNodes(given)
  const fixed = reported.filter(
    ({ node, instance, pool }) =>
      instance.pricePerHour === undefined ||
      isControlPlane(node) ||
      pool?.spec.replicas !== undefined ||
      leaving.has(node.metadata.name) ||
      instance.pods.some(({ isRoom }) => isRoom === true),
  )
  return {
    unreadable,
    snapshot,
    instances,
    nodes: reported,
    fixed: new Set(fixed.map(({ node }) => node.metadata.name)),
  }
}

/** A file may hold anything, and no object may end the report on the others. */
function readableObjects(raw: Snapshot): {
  readonly given: Snapshot
  readonly unreadable: readonly string[]
} {
  const unreadable: string[] = []
  const objects = raw.objects.flatMap((each): readonly KubeObject[] => {
    const object = withoutNulls(each)
    const problem = problemOf(object)
    if (problem === undefined) return [object]
    const { name, namespace } = object.metadata
    unreadable.push(
      `${object.kind ?? ''} ${namespace === undefined ? name : `${namespace}/${name}`} (${problem})`,
    )
    return []
  })
  return { given: { ...raw, objects }, unreadable }
}

function problemOf(object: KubeObject): string | undefined {
  if (object.kind === kinds.pod.kind) {
    const problems = shapeProblems(object as Pod)
    return problems && renderPodProblems(problems)
  }
  const [problem] = invalidObjectFields(object.kind ?? '', object)
  return problem && `${problem.field} must be ${problem.expected}`
}

function leavingNodes(snapshot: Snapshot): ReadonlySet<string> {
  const marked = new Set(snapshot.memory.marked)
  const claims = ofKind(snapshot, karpenterKinds.nodeClaim).filter(
    ({ metadata }) => metadata.deletionTimestamp !== undefined,
  )
  const ids = new Set(claims.map(({ status }) => status?.providerID))
  return new Set(
    ofKind(snapshot, kinds.node)
      .filter(({ metadata, spec }) => {
        const id = spec?.providerID
        return (
          metadata.deletionTimestamp !== undefined || (id !== undefined && (ids.has(id) || marked.has(id)))
        )
      })
      .map(({ metadata }) => metadata.name),
  )
}
