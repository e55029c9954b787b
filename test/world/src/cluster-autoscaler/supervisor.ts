import { integerBetween, type Random } from '@tenon/runtime'
import type { AutoscalerProcess } from './autoscaler-process.ts'
import type { AutoscalerWorld } from './autoscaler-world.ts'

/** Where processes run. */
type Supervised = Pick<AutoscalerWorld, 'lease' | 'startAutoscaler'>

/** Keeps the given number of processes running, as the kubelet does. */
export class Supervisor {
  readonly #world: Supervised
  #running: readonly AutoscalerProcess[]
  /** Number of processes started so far. */
  processes = 0

  constructor(world: Supervised, replicas: number) {
    this.#world = world
    this.#running = Array.from({ length: replicas }, () => this.#start())
  }

  look(): void {
    this.#running = this.#running.map((each) =>
      each.failure() !== undefined || each.port.isDead ? this.#start() : each,
    )
  }

  /** Crashes the leader, now or at its next write, before or after the write takes effect. */
  crash(dice: Random): void {
    const [first] = this.#running
    const victim = this.#leader() ?? first
    const moment = (['now', 'beforeWrite', 'afterWrite'] as const)[integerBetween(dice, 0, 2)] ?? 'now'
    if (moment === 'now') victim?.port.kill()
    else victim?.port.crashAt(moment)
  }

  /** Pauses the leader, perhaps for so long that another process takes the lease. */
  hang(dice: Random): void {
    this.#leader()?.clock.pause(integerBetween(dice, 1000, 90_000))
  }

  /** Stops the leader cleanly; it releases the lease. */
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
