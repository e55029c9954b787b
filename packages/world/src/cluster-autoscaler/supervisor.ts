import type { AutoscalerProcess, AutoscalerWorld } from './autoscaler-world.ts'

/** Starts a process in place of one that has ended, as the kubelet does. */
export class Supervisor {
  readonly #world: AutoscalerWorld
  #running: AutoscalerProcess
  processes = 1

  constructor(world: AutoscalerWorld) {
    this.#world = world
    this.#running = world.startAutoscaler()
  }

  look(): void {
    if (this.#running.failure() !== undefined) this.crash()
  }

  /** The process dies, and the next one is started. */
  crash(): void {
    this.#running.process.crash()
    void this.#running.end()
    this.processes++
    this.#running = this.#world.startAutoscaler()
  }

  async end(): Promise<void> {
    await this.#running.end()
  }
}
