/** The provider's own loops, and what wakes them. */
import type { Controller, ControllerOptions } from '@tenon/kube'
import type { SweepGuard } from '@tenon/provider'
import type { HubConnection } from './hub/connection.ts'
import type { MachineSweep } from './machines/sweep.ts'

const backoff = { baseMs: 1000, capMs: 5 * 60_000 }

/** What the loops do. */
export interface ClusterApiLoops {
  readonly sweep: MachineSweep
}

/** All loops of the provider. */
export class ClusterApiControllers {
  readonly #loops: ClusterApiLoops
  readonly #connection: Pick<HubConnection, 'start'>
  readonly #create: (options: ControllerOptions) => Controller

  /** @param create makes a controller of the process's kind, not started. */
  constructor(
    loops: ClusterApiLoops,
    connection: Pick<HubConnection, 'start'>,
    create: (options: ControllerOptions) => Controller,
  ) {
    this.#loops = loops
    this.#connection = connection
    this.#create = create
  }

  get sweeps(): readonly SweepGuard[] {
    return [this.#loops.sweep.guard]
  }

  /** Opens the hub and starts every loop; they stop when `signal` aborts. */
  start(signal: AbortSignal): void {
    const { sweep } = this.#loops
    this.#connection.start(signal)
    const machines = this.#create({
      name: 'clusterapi.machine.garbagecollection',
      concurrency: 1,
      backoff,
      reconcile: (_all, stop) => sweep.run(stop),
    })
    machines.start()
    machines.enqueue('all')
    const stop = () => {
      void machines.stop()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  }
}
