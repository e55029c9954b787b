/** Sets the provider ID of nodes, which the platform does not (clever-cloud.md 10, 20). */
import { kinds, labels, type Node, ownValue } from '@tenon/api'
import { type Cache, done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import { firstNodeOf, platformLabels, providerIdOf } from './names.ts'
import { isManaged } from './nodegroup/ownership.ts'
import type { NodeGroup } from './nodegroup/types.ts'

export interface ProviderIdsDependencies {
  readonly kube: Pick<KubeClient, 'patch'>
  readonly nodes: Pick<Cache<Node>, 'get'>
  readonly nodeGroups: () => Cache<NodeGroup>
  readonly logger: Logger
}

/** Reconciles one Node by name. */
export class ProviderIds {
  readonly #deps: ProviderIdsDependencies

  constructor(deps: ProviderIdsDependencies) {
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { nodes, nodeGroups, logger } = this.#deps
    const node = nodes.get({ name })
    if (node === undefined || (node.spec?.providerID ?? '') !== '') return done
    const groupName = ownValue(node.metadata.labels, platformLabels.nodeGroup) ?? ''
    const group = groupName === '' ? undefined : nodeGroups().get({ name: groupName })
    if (group === undefined || !isManaged(group)) return done
    if (name !== firstNodeOf(groupName)) return await this.#letGo(node, signal)
    const providerID = providerIdOf(groupName)
    await this.#patch(name, { spec: { providerID } }, signal)
    logger.info('set the provider ID of a node', { Node: { name }, providerID })
    return done
  }

  /**
   * Removes our labels from an additional node of a group that was resized: as a node of a NodePool it would block the
   * cluster state.
   */
  async #letGo({ metadata: { name, labels: own } }: Node, signal: AbortSignal): Promise<ReconcileResult> {
    if (ownValue(own, labels.nodePool) !== undefined)
      await this.#patch(name, { metadata: { labels: { [labels.nodePool]: null } } }, signal)
    return done
  }

  async #patch(name: string, patch: object, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.kube.patch(kinds.node, { name }, patch, { signal })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}
