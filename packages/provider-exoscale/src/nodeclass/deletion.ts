/** Lets a node class go once nothing uses it, and takes machines without an owner along. */
import type { NodeClaim } from '@tenon/api'
import { type Cache, done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import { nodeClassFinalizer } from '../identifiers.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from './types.ts'

const blockedRetryMs = 30_000

export interface DeletionDependencies {
  readonly kube: KubeClient
  readonly nodeClaims: Cache<NodeClaim>
  readonly fleet: Fleet
  readonly events: EventRecorder
  readonly logger: Logger
}

/** Reconciles node classes that are being deleted. */
export class NodeClassDeletion {
  readonly #deps: DeletionDependencies

  constructor(deps: DeletionDependencies) {
    this.#deps = deps
  }

  async reconcile(object: ExoscaleNodeClass, signal: AbortSignal): Promise<ReconcileResult> {
    const finalizers = object.metadata.finalizers ?? []
    if (!finalizers.includes(nodeClassFinalizer)) return done
    const users = this.#deps.nodeClaims.list().filter((claim) => isActiveUser(claim, object.metadata.name))
    if (users.length > 0) {
      const message = `${users.length} NodeClaim(s) still use this class; delete them or point their NodePool elsewhere`
      this.#event(object, 'Warning', 'DeletionBlocked', message)
      return { kind: 'after', delayMs: blockedRetryMs }
    }
    await this.#sweep(object, signal)
    const { resourceVersion } = object.metadata
    await this.#deps.kube.patch(
      exoscaleNodeClassKind,
      { name: object.metadata.name },
      { metadata: { finalizers: finalizers.filter((finalizer) => finalizer !== nodeClassFinalizer) } },
      { signal, ...(resourceVersion !== undefined && { resourceVersion }) },
    )
    this.#event(object, 'Normal', 'Deleted', 'The class is deleted')
    return done
  }

  /** Deletes this cluster's machines whose claim is gone; a failure does not hold the class back. */
  async #sweep(object: ExoscaleNodeClass, signal: AbortSignal): Promise<void> {
    const { fleet, nodeClaims, logger } = this.#deps
    let owned: Awaited<ReturnType<Fleet['owned']>>
    try {
      owned = await fleet.owned(signal)
    } catch (error) {
      signal.throwIfAborted()
      this.#event(object, 'Warning', 'CleanupFailed', `instances could not be listed: ${String(error)}`)
      return
    }
    for (const machine of owned) {
      const { nodeClaimName } = machine
      if (nodeClaimName === undefined || machine.isDeleting) continue
      if (nodeClaims.get({ name: nodeClaimName }) !== undefined) continue
      try {
        await fleet.requestDeletion(machine.id, signal)
        this.#event(object, 'Normal', 'OrphanedInstanceDeleted', `Instance ${machine.id} had no NodeClaim`)
      } catch (error) {
        signal.throwIfAborted()
        logger.warn('orphaned instance could not be deleted', { instance: machine.id, error })
      }
    }
  }

  #event(object: ExoscaleNodeClass, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.events.record({ object, type, reason, message, dedupe: [message] })
  }
}

function isActiveUser(claim: NodeClaim, className: string): boolean {
  const ref = claim.spec.nodeClassRef
  return (
    ref.group === exoscaleNodeClassKind.group &&
    ref.kind === exoscaleNodeClassKind.kind &&
    ref.name === className &&
    claim.metadata.deletionTimestamp === undefined
  )
}
