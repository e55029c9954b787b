/** Removes members that never became nodes, in the background (cluster-autoscaler.md 2.4). */
import type { Node } from '@tenon/api'
import type { GroupInstance, NodeGroups } from '@tenon/provider'
import { messageOf } from '@tenon/runtime'
import type { Reporting } from '../model.ts'
import type { UnregisteredRemoval } from './cluster-state.ts'
import type { GroupMembers } from './members.ts'
import { registeredIn } from './unregistered.ts'

export interface RemovalDependencies {
  readonly groups: Pick<NodeGroups, 'deleteInstances'>
  /** All current nodes from the API server, as a second check that an instance has none. */
  readonly listNodes: (signal: AbortSignal) => Promise<readonly Node[]>
  readonly members: Pick<GroupMembers, 'invalidate'>
  readonly reporting: Reporting
  /** `--force-delete-unregistered-nodes`. */
  readonly belowMinimum: boolean
}

type Removable = Pick<GroupInstance, 'providerId' | 'nodeName'>

/** Groups fail independently; each has at most one removal in progress. */
export class InstanceRemover {
  readonly #dependencies: RemovalDependencies
  readonly #running = new Map<string, { readonly count: number; readonly done: Promise<void> }>()

  constructor(dependencies: RemovalDependencies) {
    this.#dependencies = dependencies
  }

  /** How many members of a group are being removed. */
  inProgress(groupId: string): number {
    return this.#running.get(groupId)?.count ?? 0
  }

  /** Starts to remove old unregistered members. */
  removeUnregistered(removals: readonly UnregisteredRemoval[], signal: AbortSignal): void {
    for (const removal of removals) {
      const { groupId } = removal
      if (removal.kind === 'remove') this.#begin(groupId, removal.instances, signal)
      else
        this.#dependencies.reporting.logger.info(
          'unregistered instances are kept: the group has its minimum size',
          {
            nodeGroup: groupId,
            instances: removal.count,
          },
        )
    }
  }

  /** Starts to remove members that could not be created. */
  removeFailed(members: ReadonlyMap<string, readonly GroupInstance[]>, signal: AbortSignal): void {
    for (const [groupId, instances] of members) this.#begin(groupId, instances, signal)
  }

  /** Resolves when nothing is being removed. Never rejects. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  #begin(groupId: string, instances: readonly Removable[], signal: AbortSignal): void {
    if (this.#running.has(groupId)) return
    const done = this.#remove(groupId, instances, signal).finally(() => {
      this.#running.delete(groupId)
    })
    this.#running.set(groupId, { count: instances.length, done })
  }

  async #remove(groupId: string, instances: readonly Removable[], signal: AbortSignal): Promise<void> {
    const { groups, members, reporting, belowMinimum } = this.#dependencies
    const { events, metrics, logger } = reporting
    let doomed: readonly Removable[] = instances
    try {
      // Whatever group the node is in: its name is enough to leave the instance alone.
      const isRegistered = registeredIn(await this.#dependencies.listNodes(signal), () => true)
      doomed = instances.filter((instance) => !isRegistered({ ...instance, groupId }))
      if (doomed.length === 0) return
      const ids = doomed.map(({ providerId }) => providerId)
      await groups.deleteInstances(groupId, ids, signal, { belowMinimum })
    } catch (error) {
      if (signal.aborted) return
      for (const { providerId } of doomed)
        events.status(
          'Warning',
          'DeleteUnregisteredFailed',
          `Failed to remove node ${providerId}: ${messageOf(error)}`,
        )
      logger.warn('could not remove unregistered instances', { nodeGroup: groupId, error })
      return
    } finally {
      members.invalidate(groupId)
    }
    for (const { providerId } of doomed)
      events.status('Normal', 'DeleteUnregistered', `Removed unregistered node ${providerId}`)
    metrics.add('old_unregistered_nodes_removed_count', doomed.length)
  }
}
