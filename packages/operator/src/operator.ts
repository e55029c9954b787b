/** The running autoscaler: caches, state, controllers, and the order in which they start and stop. */
import { type Clock, eventLoopTurns, type Logger, type Random } from '@tenon/runtime'
import type { CacheRegistry, EventRecorder, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { overlaidProvider, overlayLayer } from './controllers/nodeoverlay/overlaid-provider.ts'
import { PlacementGate } from './controllers/planned-placement/gate.ts'
import { InlineDecider, type SchedulingDecider } from './decide/decider.ts'
import { Metrics } from './metrics/metrics.ts'
import { type Caches, openCaches } from './observe/caches.ts'
import type { Settings } from './settings.ts'
import { ClusterState } from './state/cluster-state.ts'
import { type Runnable, wireControllers } from './wiring.ts'

/** What an operator runs on. */
export interface OperatorDependencies {
  readonly client: KubeClient
  /** Caches not started yet; the operator adds its own and starts all of them. */
  readonly registry: CacheRegistry
  readonly provider: CloudProvider
  readonly events: EventRecorder
  /** Closed when the operator stops; without one, decisions are made in this thread. */
  readonly decider?: SchedulingDecider
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

/** One operator. `start` may be called once, `stop` at any time after it. */
export class Operator {
  readonly metrics = new Metrics()
  readonly caches: Caches
  readonly state: ClusterState
  readonly #deps: OperatorDependencies
  readonly #decider: SchedulingDecider
  readonly #stopping = new AbortController()
  #controllers: readonly Runnable[] = []

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
    this.#decider = deps.decider ?? new InlineDecider(deps.clock)
    this.caches = openCaches(deps.registry, deps.provider, deps.settings)
    const { provider, clock, settings } = deps
    this.state = new ClusterState(this.caches, provider, clock, settings.registrationTimeoutMs)
  }

  /** Starts watching. Resolves when every cache holds a complete list; rejects when `signal` aborts. */
  async observe(signal?: AbortSignal): Promise<void> {
    const { registry } = this.#deps
    registry.start(this.#stopping.signal)
    await registry.synced(signal)
  }

  /** Starts deciding and acting; call it once this process leads and has observed. */
  lead(): void {
    const { client, provider, events, clock, random, logger, settings } = this.#deps
    const overlays = overlayLayer(this.caches, provider)
    this.#controllers = wireControllers({
      client,
      caches: this.caches,
      state: this.state,
      provider: overlays === undefined ? provider : overlaidProvider(provider, overlays.store),
      ...(overlays && { overlays }),
      events,
      decider: this.#decider,
      placementGate: new PlacementGate({ client, settings, logger }),
      metrics: this.metrics,
      clock,
      turns: eventLoopTurns,
      random,
      logger,
      settings,
    })
    for (const controller of this.#controllers) controller.start()
    provider.startControllers(this.#stopping.signal)
  }

  /** Types of objects whose first list has not arrived. */
  get waitingFor(): readonly string[] {
    return this.#deps.registry.waitingFor
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the operator is stopping'))
    const stopped = this.#controllers.map((controller) => controller.stop())
    await Promise.all([...stopped, this.#decider.close()])
  }
}
