/** Tells of nodes that were launched in vain. */
import type { Pod } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { UselessNode } from '../../cluster/nodes/node-evidence.ts'
import { uselessText } from '../../cluster/nodes/useless-text.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'evidence'>
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'heldWorkloads' | 'uselessNodes'>
  readonly logger: Logger
}

export class EvidenceReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param short resources of which the node has too little for the pod. */
  useless(entry: UselessNode, pod: Pod, short: readonly string[]): void {
    const { events, logger, metrics } = this.#deps
    metrics.uselessNodes.inc({ nodepool: entry.nodePool, cause: entry.cause })
    const message = uselessText(entry, short)
    logger.warn('a node was launched in vain', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      NodeClaim: { name: entry.claim },
      Node: { name: entry.node },
      NodePool: { name: entry.nodePool },
      cause: entry.cause,
      scheduler: entry.words,
    })
    events.record({
      object: pod,
      type: 'Warning',
      reason: 'NodeRefused',
      message,
      dedupe: [pod.metadata.uid ?? '', entry.node],
    })
  }

  /** Shows how many workloads get no nodes for now, and notes which of them wait. */
  held(waiting: ReadonlyMap<string, readonly Pod[]>): void {
    const { caches, metrics, state } = this.#deps
    const counts = new Map(caches.nodePools.list().map(({ metadata }) => [metadata.name, 0]))
    for (const entry of state.evidence.all()) {
      const isWaitedFor = (waiting.get(entry.workload) ?? []).length > 0
      state.evidence.await(entry.workload, isWaitedFor)
      if (isWaitedFor && state.evidence.isHeld(entry))
        counts.set(entry.nodePool, (counts.get(entry.nodePool) ?? 0) + 1)
    }
    metrics.heldWorkloads.reset()
    for (const [nodepool, count] of counts) metrics.heldWorkloads.set({ nodepool }, count)
  }
}
