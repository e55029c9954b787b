/** Tells of Nodes that their claims have taken over: logs, events, metrics, and the NodePool's health. */
import { labels, type Node, type NodeClaim } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import { wasRegistered } from './standing.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly events: EventRecorder
  readonly state: Pick<ClusterState, 'registrationHealth'>
  readonly metrics: Pick<Metrics, 'nodesCreated'>
  readonly logger: Logger
  readonly claimJournal: ClaimJournal
}

export class RegistrationReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  taintMissing(claim: NodeClaim, node: Node): void {
    const { events, logger } = this.#deps
    logger.warn('node joined without the unregistered taint', { Node: { name: node.metadata.name } })
    events.record({
      object: claim,
      type: 'Warning',
      reason: 'UnregisteredTaintMissing',
      message: `Node ${node.metadata.name} joined without taint karpenter.sh/unregistered:NoExecute; pods may have been bound before its taints were complete`,
      dedupe: [claim.metadata.uid ?? ''],
    })
  }

  /** The Node of a claim that was registered before is not one more. */
  registered(claim: NodeClaim, node: Node): void {
    const { claimJournal, metrics, logger, state } = this.#deps
    if (wasRegistered(claim)) {
      logger.info('registered nodeclaim again', {
        NodeClaim: { name: claim.metadata.name },
        Node: { name: node.metadata.name },
        'provider-id': claim.status?.providerID,
      })
      return
    }
    state.registrationHealth.record(claim)
    claimJournal.registered(claim, node.metadata.name)
    metrics.nodesCreated.inc({
      nodepool: claim.metadata.labels?.[labels.nodePool] ?? '',
      zone: claim.metadata.labels?.[labels.zone] ?? '',
    })
    logger.info('registered nodeclaim', {
      NodeClaim: { name: claim.metadata.name },
      Node: { name: node.metadata.name },
      'provider-id': claim.status?.providerID,
    })
  }
}
