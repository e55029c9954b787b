/** Reads that are repeated before a node is deleted, as the decision may be minutes old. */
import type { Node, Pod, PodDisruptionBudget } from '@tenon/api'
import type { Lookups } from '../../model.ts'

/** Every promise may reject with a KubeError. */
export interface ClusterReader {
  /** From the API server; undefined if the node does not exist. */
  node(name: string, signal: AbortSignal): Promise<Node | undefined>
  /** Pods bound to a node, from the API server, as a cache may lack a pod that was just bound. */
  podsOf(nodeName: string, signal: AbortSignal): Promise<readonly Pod[]>
  disruptionBudgets(signal: AbortSignal): Promise<readonly PodDisruptionBudget[]>
  /** From the caches. */
  readonly controllerOf: Lookups['controllerOf']
  /** From the caches; shows how late they are. */
  cachedNode(name: string): Node | undefined
}
