/** The running autoscaler: caches, state, controllers, and the order in which they start and stop. */
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { CacheRegistry, EventRecorder, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
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
  readonly #stopping = new AbortController()
  #controllers: readonly Runnable[] = []

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
    this.caches = openCaches(deps.registry, deps.provider)
    this.state = new ClusterState(this.caches, deps.provider, deps.clock)
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
    this.#controllers = wireControllers({
      client,
      caches: this.caches,
      state: this.state,
      provider,
      events,
      metrics: this.metrics,
      clock,
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
    await Promise.all(this.#controllers.map((controller) => controller.stop()))
  }
}
