/**
 * Removes the finalizer of a node class that is no longer used, and with the last one instances without an owner.
 */
import { counted, karpenterKinds, type NodeClaim } from '@tenon/api'
import { type Cache, done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { nodeClassFinalizer } from '../identifiers.ts'
import type { GarbageCollection } from '../garbage-collection.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from './types.ts'

const blockedRetryMs = 30_000

export interface DeletionDependencies {
  readonly kube: Pick<KubeClient, 'list' | 'patch'>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodeClasses: Pick<Cache<ExoscaleNodeClass>, 'list'>
  readonly garbage: Pick<GarbageCollection, 'collectOrphans'>
  readonly events: EventRecorder
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
    const users = await this.#users(object.metadata.name, signal)
    if (users > 0) {
      const message = `${counted(users, 'NodeClaim')} of this class left; delete them, or change the nodeClassRef of their NodePool`
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
    this.#event(object, 'Normal', 'Deleted', 'The node class is deleted')
    return done
  }

  /** The number of claims that use the node class. If the cache has none, the API server is asked. */
  async #users(name: string, signal: AbortSignal): Promise<number> {
    const using = (claims: readonly NodeClaim[]) => claims.filter((claim) => isActiveUser(claim, name)).length
    const known = using(this.#deps.nodeClaims.list())
    return known > 0 ? known : using(await this.#deps.kube.list(karpenterKinds.nodeClaim, { signal }))
  }

  /**
   * With the last class, deletes this cluster's instances without a claim. A failure does not block the deletion of the node
   * class.
   */
  async #sweep(object: ExoscaleNodeClass, signal: AbortSignal): Promise<void> {
    try {
      if (!(await this.#isLast(object.metadata.name, signal))) return
      for (const id of await this.#deps.garbage.collectOrphans(signal))
        this.#event(object, 'Normal', 'OrphanedInstanceDeleted', `Instance ${id} had no NodeClaim`)
    } catch (error) {
      signal.throwIfAborted()
      this.#event(object, 'Warning', 'CleanupFailed', `instances could not be checked: ${String(error)}`)
    }
  }

  /**
   * Whether the whole installation goes, by the cache and by a fresh read. While another class stays, so may the nodes of
   * instances without a claim, as after a restore of etcd: garbage collection announces them first.
   */
  async #isLast(name: string, signal: AbortSignal): Promise<boolean> {
    const isAlone = (classes: readonly ExoscaleNodeClass[]) =>
      classes.every(({ metadata }) => metadata.name === name || metadata.deletionTimestamp !== undefined)
    if (!isAlone(this.#deps.nodeClasses.list())) return false
    const fresh = await this.#deps.kube.list(exoscaleNodeClassKind, { signal })
    // A list without the class itself is wrong about the others, too.
    return fresh.some(({ metadata }) => metadata.name === name) && isAlone(fresh)
  }

  #event(object: ExoscaleNodeClass, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.events.record({ object, type, reason, message, dedupe: [message] })
  }
}

/** A claim that does not name its node class may use this one. */
function isActiveUser(claim: NodeClaim, className: string): boolean {
  const { nodeClassRef: ref } = (claim.spec as Partial<NodeClaim['spec']> | undefined) ?? {}
  if (typeof ref?.name !== 'string' || ref.name === '') return true
  return (
    ref.group === exoscaleNodeClassKind.group &&
    ref.kind === exoscaleNodeClassKind.kind &&
    ref.name === className &&
    claim.metadata.deletionTimestamp === undefined
  )
}
