/** The provider's own controllers and their triggers (clever-cloud.md 10, 20). */
import type { Node, NodeClaim } from '@tenon/api'
import type { Cache, Controller, ControllerOptions } from '@tenon/kube'
import type { SweepGuard } from '@tenon/provider'
import type { CapacityReports } from './capacity-reports.ts'
import type { FollowUp } from './follow-up.ts'
import type { GarbageCollection } from './garbage-collection.ts'
import { firstNodeOf, platformLabels } from './names.ts'
import type { NodeClassStatus } from './nodeclass/status-controller.ts'
import type { CleverNodeClass } from './nodeclass/types.ts'
import type { NodeGroup } from './nodegroup/types.ts'
import type { ProviderIds } from './provider-ids.ts'

/** The reconcile functions. */
export interface CleverLoops {
  readonly nodeClassStatus: NodeClassStatus
  readonly providerIds: ProviderIds
  readonly capacityReports: CapacityReports
  readonly followUp: FollowUp
  readonly garbage: GarbageCollection
}

/** What triggers the controllers. */
export interface CleverCaches {
  readonly nodeClasses: Cache<CleverNodeClass>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodes: Cache<Node>
  /** Follows NodeGroups from the first call on. */
  readonly nodeGroups: () => Cache<NodeGroup>
}

const backoff = { baseMs: 1000, capMs: 5 * 60_000 }

/** All controllers of the provider. */
export class CleverControllers {
  readonly #loops: CleverLoops
  readonly #caches: CleverCaches
  readonly #create: (options: ControllerOptions) => Controller

  /** @param create creates a controller without starting it. */
  constructor(loops: CleverLoops, caches: CleverCaches, create: (options: ControllerOptions) => Controller) {
    this.#loops = loops
    this.#caches = caches
    this.#create = create
  }

  get sweeps(): readonly SweepGuard[] {
    return this.#loops.garbage.guards
  }

  /** Starts every controller; they stop when `signal` aborts. */
  start(signal: AbortSignal): void {
    const { nodeClassStatus, providerIds, capacityReports, followUp, garbage } = this.#loops
    const { nodeClasses, nodeClaims, nodes } = this.#caches
    const nodeGroups = this.#caches.nodeGroups()
    const nodeClass = this.#loop('clevercloud.nodeclass', (name, stop) =>
      nodeClassStatus.reconcile(name, stop),
    )
    const providerId = this.#loop('clevercloud.node.providerid', (name, stop) =>
      providerIds.reconcile(name, stop),
    )
    const capacity = this.#loop('clevercloud.instancetype.capacity', (name) =>
      capacityReports.reconcile(name),
    )
    const status = this.#loop('clevercloud.nodegroup.status', (name, stop) => followUp.reconcile(name, stop))
    const sweep = this.#loop('clevercloud.nodegroup.garbagecollection', (_all, stop) => garbage.run(stop), 1)
    const unsubscribe = [
      nodeClasses.onChange((change) => {
        if (change.kind !== 'updated' || isNews(change.object, change.old))
          nodeClass.enqueue(change.object.metadata.name)
      }),
      nodes.onChange(({ object }) => {
        if (object.metadata.labels?.[platformLabels.nodeGroup] === undefined) return
        providerId.enqueue(object.metadata.name)
        capacity.enqueue(object.metadata.name)
      }),
      nodeClaims.onChange(({ object }) => {
        status.enqueue(object.metadata.name)
      }),
      nodeGroups.onChange(({ object }) => {
        const { name } = object.metadata
        status.enqueue(name)
        // Its Node may have been seen before it.
        providerId.enqueue(firstNodeOf(name))
        capacity.enqueue(firstNodeOf(name))
      }),
    ]
    const controllers = [nodeClass, providerId, capacity, status, sweep]
    for (const controller of controllers) controller.start()
    sweep.enqueue('all')
    const stop = () => {
      for (const cancel of unsubscribe) cancel()
      for (const controller of controllers) void controller.stop()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  }

  #loop(name: string, reconcile: ControllerOptions['reconcile'], concurrency = 5): Controller {
    return this.#create({ name, concurrency, backoff, reconcile })
  }
}

/** Ignores our own status writes. */
function isNews({ metadata }: CleverNodeClass, { metadata: old }: CleverNodeClass): boolean {
  return metadata.generation !== old.generation || metadata.deletionTimestamp !== old.deletionTimestamp
}
