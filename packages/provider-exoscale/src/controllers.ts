/** Starts the controllers of the provider. */
import type { Node } from '@tenon/api'
import type { Cache, Controller, ControllerOptions, ReconcileResult } from '@tenon/kube'
import type { GarbageCollection } from './garbage-collection.ts'
import type { FirstHeartbeat } from './launch/first-heartbeat.ts'
import type { FullGroups } from './launch/full-groups.ts'
import type { TokenCleanup } from './launch/token-cleanup.ts'
import type { NodeClassStatusController } from './nodeclass/status-controller.ts'
import type { ExoscaleNodeClass } from './nodeclass/types.ts'

export interface ProviderControllerDependencies {
  readonly loops: {
    readonly nodeClassStatus: NodeClassStatusController
    readonly firstHeartbeat: FirstHeartbeat
    readonly tokenCleanup: TokenCleanup
    readonly garbage: GarbageCollection
    readonly groups: FullGroups
  }
  readonly nodeClasses: Pick<Cache<ExoscaleNodeClass>, 'onChange'>
  readonly nodes: Pick<Cache<Node>, 'onChange'>
  readonly createController: (options: ControllerOptions) => Controller
}

const backoff = { baseMs: 1000, capMs: 5 * 60_000 }

/** Starts every loop of the provider and stops them when `signal` aborts. */
export function startProviderControllers(deps: ProviderControllerDependencies, signal: AbortSignal): void {
  const { loops } = deps
  const nodeClass = deps.createController({
    name: 'exoscale.nodeclass',
    concurrency: 5,
    backoff,
    reconcile: (name, stopping) => loops.nodeClassStatus.reconcile(name, stopping),
  })
  const firstHeartbeat = deps.createController({
    name: 'exoscale.firstheartbeat',
    concurrency: 5,
    backoff,
    reconcile: (name, stopping) => loops.firstHeartbeat.reconcile(name, stopping),
  })
  const controllers = [
    nodeClass,
    firstHeartbeat,
    pass(deps, 'exoscale.tokencleanup', (stopping) => loops.tokenCleanup.run(stopping)),
    pass(deps, 'exoscale.garbagecollection', (stopping) => loops.garbage.run(stopping)),
    pass(deps, 'exoscale.antiaffinitygroups', (stopping) => loops.groups.run(stopping)),
  ]
  const unsubscribe = [
    deps.nodeClasses.onChange((change) => {
      if (change.kind === 'updated' && !isWorthLooking(change.object, change.old)) return
      nodeClass.enqueue(change.object.metadata.name)
    }),
    deps.nodes.onChange((change) => {
      if (change.kind === 'added') firstHeartbeat.enqueue(change.object.metadata.name)
    }),
  ]
  for (const controller of controllers) controller.start()
  const stop = () => {
    for (const cancel of unsubscribe) cancel()
    for (const controller of controllers) void controller.stop()
  }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
}

/** A loop over all objects: a controller with one key. */
function pass(
  { createController }: Pick<ProviderControllerDependencies, 'createController'>,
  name: string,
  run: (signal: AbortSignal) => Promise<ReconcileResult>,
): Controller {
  const controller = createController({
    name,
    concurrency: 1,
    backoff,
    reconcile: (_key, signal) => run(signal),
  })
  controller.enqueue('all')
  return controller
}

/** Ignores our own status writes. */
function isWorthLooking(object: ExoscaleNodeClass, old: ExoscaleNodeClass): boolean {
  return (
    object.metadata.generation !== old.metadata.generation ||
    object.metadata.deletionTimestamp !== old.metadata.deletionTimestamp
  )
}
