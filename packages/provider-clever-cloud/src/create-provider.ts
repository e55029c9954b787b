/** Builds the provider from its parts. */
import type { Controller, ControllerOptions, EventRecorder, KubeClient } from '@tenon/kube'
import type { OfferingNews } from '@tenon/provider'
import { Listeners, type Runtime } from '@tenon/runtime'
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

/** What the provider needs. */
export interface CleverCloudParts {
  readonly kubernetes: {
    readonly client: KubeClient
    readonly events: EventRecorder
    readonly caches: CleverCaches
  }
  /** Data about the platform. */
  readonly platform: {
    readonly region: string
    readonly catalogue: Catalogue
  }
  readonly metrics?: CleverMetrics
  readonly runtime: Pick<Runtime, 'clock' | 'logger'>
  /** Creates a controller without starting it. */
  readonly createController: (options: ControllerOptions) => Controller
}

/** Creates the provider; nothing runs before its controllers are started. */
export function createCleverCloudProvider({
  kubernetes,
  platform,
  metrics = new CleverMetrics(),
  runtime,
  createController,
}: CleverCloudParts): CleverCloudProvider {
  const { client: kube, events, caches } = kubernetes
  const { catalogue } = platform
  const { clock, logger } = runtime
  const deps = { kube, events, ...caches, ...platform, metrics, clock, logger }
  const news = new Listeners<OfferingNews>()
  const refusals = new Refusals({ ...deps, sizes: () => catalogue.sizes() })
  const followUp = new FollowUp({ ...deps, caches, outcomes: { refusals, news } })
  const loops = {
    nodeClassStatus: new NodeClassStatus(deps),
    providerIds: new ProviderIds(deps),
    capacityReports: new CapacityReports(deps),
    followUp,
    garbage: new GarbageCollection({ ...deps, followUp }),
  }
  const answers = { acceptance: new Acceptance(deps), refusals, turns: new Turns(clock) }
  const launcher = new Launcher({ ...deps, answers, reports: { metrics, events, logger } })
  const controllers = new CleverControllers(loops, caches, createController)
  return new CleverCloudProvider({ ...deps, launcher, controllers, reports: { news, metrics } })
}
