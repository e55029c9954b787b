/** Builds the provider from its parts. */
import type { Controller, ControllerOptions, EventRecorder, KubeClient } from '@tenon/kube'
import type { OfferingNews } from '@tenon/provider'
import { type Clock, Listeners, type Logger } from '@tenon/runtime'
import { CapacityReports } from './capacity-reports.ts'
import type { Catalogue } from './catalogue/catalogue.ts'
import { type CleverCaches, CleverControllers } from './controllers.ts'
import { FollowUp } from './follow-up.ts'
import { GarbageCollection } from './garbage-collection.ts'
import { Acceptance } from './launch/acceptance.ts'
import { Launcher } from './launch/launcher.ts'
import { Refusals } from './launch/refusals.ts'
import { Turns } from './launch/turns.ts'
import { CleverMetrics } from './metrics.ts'
import { NodeClassStatus } from './nodeclass/status-controller.ts'
import { CleverCloudProvider } from './provider.ts'
import { ProviderIds } from './provider-ids.ts'

/** What the provider is built on. */
export interface CleverCloudParts {
  readonly kube: KubeClient
  readonly caches: CleverCaches
  readonly catalogue: Catalogue
  readonly region: string
  readonly metrics?: CleverMetrics
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
  /** Makes a controller of the process's kind, not started. */
  readonly createController: (options: ControllerOptions) => Controller
}

/** Makes the provider; nothing runs before its controllers are started. */
export function createCleverCloudProvider({
  caches,
  metrics = new CleverMetrics(),
  createController,
  ...parts
}: CleverCloudParts): CleverCloudProvider {
  const { catalogue } = parts
  const deps = { ...parts, ...caches, metrics }
  const news = new Listeners<OfferingNews>()
  const refusals = new Refusals({ ...deps, sizes: () => catalogue.sizes() })
  const loops = {
    nodeClassStatus: new NodeClassStatus(deps),
    providerIds: new ProviderIds(deps),
    capacityReports: new CapacityReports(deps),
    followUp: new FollowUp({ ...deps, refusals, news }),
    garbage: new GarbageCollection(deps),
  }
  return new CleverCloudProvider({
    ...deps,
    news,
    launcher: new Launcher({
      ...deps,
      refusals,
      acceptance: new Acceptance(deps),
      turns: new Turns(parts.clock),
    }),
    controllers: new CleverControllers(loops, caches, createController),
  })
}
