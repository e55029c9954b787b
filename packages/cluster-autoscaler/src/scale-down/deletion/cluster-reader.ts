/** What is read again before a node is deleted: a decision may be minutes old by then. */
import type { Node, Pod, PodDisruptionBudget } from '@tenon/api'
import type { Lookups } from '../../model.ts'

/** Every promise may reject with a KubeError. */
export interface ClusterReader {
  /** Asked of the API server, not of a cache; undefined = there is no such node. */
  node(name: string, signal: AbortSignal): Promise<Node | undefined>
  /** Pods bound to a node. Asked of the API server: a cache may not know yet of one that was bound just now. */
  podsOf(nodeName: string, signal: AbortSignal): Promise<readonly Pod[]>
  disruptionBudgets(signal: AbortSignal): Promise<readonly PodDisruptionBudget[]>
  /** As the caches have it. */
  readonly controllerOf: Lookups['controllerOf']
  /** As the caches have it: tells how late they are. */
  cachedNode(name: string): Node | undefined
}
