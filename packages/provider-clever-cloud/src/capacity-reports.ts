/** Updates the catalogue with the resources that nodes turn out to have (clever-cloud.md 10, 20). */
import { type Node, ownValue, parseResources } from '@tenon/api'
import { type Cache, done, type ReconcileResult } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { Catalogue } from './catalogue/catalogue.ts'
import type { CleverMetrics } from './metrics.ts'
import { platformLabels } from './names.ts'
import { isManaged } from './nodegroup/ownership.ts'
import { flavorOf } from './nodegroup/spec.ts'
import type { NodeGroup } from './nodegroup/types.ts'

export interface CapacityReportsDependencies {
  readonly nodes: Pick<Cache<Node>, 'get'>
  readonly nodeGroups: () => Cache<NodeGroup>
  readonly catalogue: Pick<Catalogue, 'observe'>
  readonly metrics: Pick<CleverMetrics, 'capacityRejections'>
  readonly logger: Logger
}

/** Reconciles one Node by name. */
export class CapacityReports {
  readonly #deps: CapacityReportsDependencies
  /** The last rejected report of each node, so that it is counted once. */
  readonly #refused = new Map<string, string>()

  constructor(deps: CapacityReportsDependencies) {
    this.#deps = deps
  }

  reconcile(name: string): Promise<ReconcileResult> {
    const { nodes, nodeGroups, catalogue, metrics, logger } = this.#deps
    const node = nodes.get({ name })
    const own = node?.metadata.labels
    const flavor = ownValue(own, platformLabels.flavor)
    const group = nodeGroups().get({ name: ownValue(own, platformLabels.nodeGroup) ?? '' })
    if (node === undefined || flavor === undefined || group === undefined || !isManaged(group)) {
      this.#refused.delete(name)
      return Promise.resolve(done)
    }
    const verdict = catalogue.observe({
      nodeName: name,
      flavor,
      role: ownValue(own, platformLabels.role) ?? '',
      nodeGroup: { name: group.metadata.name, flavor: flavorOf(group) },
      capacity: parseResources(node.status?.capacity),
      allocatable: parseResources(node.status?.allocatable),
    })
    if (verdict.kind !== 'refused') this.#refused.delete(name)
    else if (this.#refused.get(name) !== verdict.because) {
      this.#refused.set(name, verdict.because)
      metrics.capacityRejections.count()
      logger.warn('the capacity of a node is not believed', {
        Node: { name },
        flavor,
        because: verdict.because,
      })
    }
    return Promise.resolve(done)
  }
}
