/** Reports nodes that were launched in vain. */
import { labels, type Node, type NodeClaim, type Pod } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { UselessNode } from '../../state/nodes/node-evidence.ts'
import { uselessText } from '../../state/nodes/node-evidence.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Parts {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'evidence'>
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'heldWorkloads' | 'uselessNodes'>
  readonly logger: Logger
}

export class EvidenceReport {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  useless(entry: UselessNode | undefined, pod: Pod): void {
    if (entry === undefined) return
    const { logger, metrics } = this.#parts
    metrics.uselessNodes.inc({ nodepool: entry.nodePool, cause: entry.cause })
    logger.warn('a node was launched in vain', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      NodeClaim: { name: entry.claim },
      Node: { name: entry.node },
      NodePool: { name: entry.nodePool },
      cause: entry.cause,
      scheduler: entry.words,
    })
    this.#warn(pod, entry.node, entry.cause === 'refused' ? 'NodeRefused' : 'NodeUnused', uselessText(entry))
  }

  /** @param short resources of which the node has too little for the pod. */
  small(claim: NodeClaim, node: Node, pod: Pod, short: readonly string[]): void {
    const { name } = node.metadata
    const nodepool = claim.metadata.labels?.[labels.nodePool] ?? ''
    this.#parts.metrics.uselessNodes.inc({ nodepool, cause: 'short' })
    const what = `Node ${name} (NodeClaim ${claim.metadata.name}) was launched for pod ${pod.metadata.namespace}/${pod.metadata.name}`
    const message = `${what} and has less ${short.join(', ')} than was planned; the next decision uses that`
    this.#warn(pod, name, 'NodeRefused', message)
  }

  #warn(pod: Pod, node: string, reason: string, message: string): void {
    const dedupe = [pod.metadata.uid ?? '', node]
    this.#parts.events.record({ object: pod, type: 'Warning', reason, message, dedupe })
  }

  /** Shows for how many workloads that wait each NodePool launches nothing for now. */
  held(): void {
    const { caches, metrics, state } = this.#parts
    const counts = new Map(caches.nodePools.list().map(({ metadata }) => [metadata.name, 0]))
    for (const entry of state.evidence.all())
      if (state.evidence.isAwaited(entry.workload) && state.evidence.isHeld(entry))
        counts.set(entry.nodePool, (counts.get(entry.nodePool) ?? 0) + 1)
    metrics.heldWorkloads.reset()
    for (const [nodepool, count] of counts) metrics.heldWorkloads.set({ nodepool }, count)
  }
}
