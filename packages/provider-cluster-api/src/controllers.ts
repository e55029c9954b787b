/** The provider's own controllers and their triggers. */
import type { Cache, Controller, ControllerOptions } from '@tenon/kube'
import type { SweepGuard } from '@tenon/provider'
import type { HubConnection } from './hub/connection.ts'
import type { MachineSweep } from './machines/sweep.ts'
import type { NodeClassStatus } from './nodeclass/status-controller.ts'
import { followNodeClasses } from './nodeclass/status-triggers.ts'
import type { ClusterAPINodeClass } from './node-class.ts'

const backoff = { baseMs: 1000, capMs: 5 * 60_000 }

/** The reconcile functions. */
export interface ClusterApiLoops {
  readonly sweep: MachineSweep
  readonly nodeClassStatus: NodeClassStatus
}

/** What triggers the controllers. */
export interface ClusterApiSources {
  readonly hub: Pick<HubConnection, 'onOpen' | 'start' | 'state'>
  readonly nodeClasses: Cache<ClusterAPINodeClass>
}

/** All controllers of the provider. */
export class ClusterApiControllers {
  readonly #loops: ClusterApiLoops
  readonly #sources: ClusterApiSources
  readonly #create: (options: ControllerOptions) => Controller

  /** @param create creates a controller without starting it. */
  constructor(
    loops: ClusterApiLoops,
    sources: ClusterApiSources,
    create: (options: ControllerOptions) => Controller,
  ) {
    this.#loops = loops
    this.#sources = sources
    this.#create = create
  }

  get sweeps(): readonly SweepGuard[] {
    return [this.#loops.sweep.guard]
  }

  /** Opens the hub without starting controllers. */
  startReading(signal: AbortSignal): void {
    this.#sources.hub.start(signal)
  }

  /** Opens the hub and starts every controller; they stop when `signal` aborts. */
  start(signal: AbortSignal): void {
    const { sweep, nodeClassStatus } = this.#loops
    const { hub, nodeClasses } = this.#sources
    hub.start(signal)
    const machines = this.#loop('clusterapi.machine.garbagecollection', 1, (_all, stop) => sweep.run(stop))
    const classes = this.#loop('clusterapi.nodeclass', 10, (name, stop) =>
      nodeClassStatus.reconcile(name, stop),
    )
    const unfollow = followNodeClasses(classes, nodeClasses, hub)
    const controllers = [machines, classes]
    for (const controller of controllers) controller.start()
    machines.enqueue('all')
    const stop = () => {
      unfollow()
      for (const controller of controllers) void controller.stop()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  }

  #loop(name: string, concurrency: number, reconcile: ControllerOptions['reconcile']): Controller {
    return this.#create({ name, concurrency, backoff, reconcile })
  }
}
