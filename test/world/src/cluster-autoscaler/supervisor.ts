import { integerBetween, type Random } from '@tenon/runtime'
import type { AutoscalerProcess, AutoscalerWorld } from './autoscaler-world.ts'

/** Keeps as many processes as asked for, and starts one in place of each that has ended, as the kubelet does. */
export class Supervisor {
  readonly #world: AutoscalerWorld
  #running: readonly AutoscalerProcess[]
  /** How many were started. */
  processes = 0

  constructor(world: AutoscalerWorld, replicas: number) {
    this.#world = world
    this.#running = Array.from({ length: replicas }, () => this.#start())
  }

  look(): void {
    this.#running = this.#running.map((each) =>
      each.failure() !== undefined || each.port.isDead ? this.#start() : each,
    )
  }

  /** The leader dies, now or at its next write, before or after the server has carried that out. */
  crash(dice: Random): void {
    const [first] = this.#running
    const victim = this.#leader() ?? first
    const moment = (['now', 'beforeWrite', 'afterWrite'] as const)[integerBetween(dice, 0, 2)] ?? 'now'
    if (moment === 'now') victim?.port.kill()
    else victim?.port.crashAt(moment)
  }

  /** The leader gets no time for a while: for so long that another one leads, or not. */
  hang(dice: Random): void {
    this.#leader()?.clock.pause(integerBetween(dice, 1000, 90_000))
  }

  /** The leader is asked to end, and gives the lease back. */
  async restart(): Promise<void> {
    const leader = this.#leader()
    if (leader === undefined || leader.clock.isPaused) return
    await leader.end()
    leader.port.kill()
    this.look()
  }

  async end(): Promise<void> {
    for (const each of this.#running) {
      await each.clock.resumed()
      if (!each.port.isDead && each.failure() === undefined) await each.end()
    }
  }

  #leader(): AutoscalerProcess | undefined {
    const holder = this.#world.lease()?.spec?.holderIdentity
    return this.#running.find(({ identity, port }) => identity === holder && !port.isDead)
  }

  #start(): AutoscalerProcess {
    this.processes++
    return this.#world.startAutoscaler()
  }
}
