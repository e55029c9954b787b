/** The controllers of the provider, and their triggers. */
import type { Node, NodeClaim } from '@tenon/api'
import type {
  Cache,
  Controller,
  ControllerOptions,
  EventRecorder,
  KubeClient,
  ReconcileResult,
} from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from './api/client.ts'
import type { GarbageCollection } from './garbage-collection.ts'
import type { BootstrapTokens } from './launch/bootstrap-token.ts'
import { FirstHeartbeat } from './launch/first-heartbeat.ts'
import { TokenCleanup } from './launch/token-cleanup.ts'
import { NodeClassDeletion } from './nodeclass/deletion.ts'
import { NodeClassStatusController } from './nodeclass/status-controller.ts'
import type { TemplateResolver } from './nodeclass/template.ts'
import type { ExoscaleNodeClass } from './nodeclass/types.ts'

export interface ProviderControllerDependencies {
  readonly api: ExoscaleClient
  readonly kube: KubeClient
  readonly nodeClasses: Cache<ExoscaleNodeClass>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodes: Cache<Node>
  readonly templates: TemplateResolver
  readonly tokens: BootstrapTokens
  readonly garbage: GarbageCollection
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly createController: (options: ControllerOptions) => Controller
}

const backoff = { baseMs: 1000, capMs: 5 * 60_000 }

/** Starts every loop of the provider and stops them when `signal` aborts. */
export function startProviderControllers(deps: ProviderControllerDependencies, signal: AbortSignal): void {
  const deletion = new NodeClassDeletion(deps)
  const status = new NodeClassStatusController({ ...deps, deletion })
  const heartbeat = new FirstHeartbeat(deps)
  const nodeClass = deps.createController({
    name: 'exoscale.nodeclass',
    concurrency: 5,
    backoff,
    reconcile: (name, stopping) => status.reconcile(name, stopping),
  })
  const firstHeartbeat = deps.createController({
    name: 'exoscale.firstheartbeat',
    concurrency: 5,
    backoff,
    reconcile: (name, stopping) => heartbeat.reconcile(name, stopping),
  })
  const tokenCleanup = new TokenCleanup(deps)
  const controllers = [
    nodeClass,
    firstHeartbeat,
    pass(deps, 'exoscale.tokencleanup', (stopping) => tokenCleanup.run(stopping)),
    pass(deps, 'exoscale.garbagecollection', (stopping) => deps.garbage.run(stopping)),
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

/** A loop over everything: a controller with one key. */
function pass(
  deps: ProviderControllerDependencies,
  name: string,
  run: (signal: AbortSignal) => Promise<ReconcileResult>,
): Controller {
  const controller = deps.createController({
    name,
    concurrency: 1,
    backoff,
    reconcile: (_key, signal) => run(signal),
  })
  controller.enqueue('all')
  return controller
}

/** Our own status writes change neither. */
function isWorthLooking(object: ExoscaleNodeClass, old: ExoscaleNodeClass): boolean {
  return (
    object.metadata.generation !== old.metadata.generation ||
    object.metadata.deletionTimestamp !== old.metadata.deletionTimestamp
  )
}
