/** Faults between the processes and the hub. */
import { type Clock, integerBetween, oneChunk, type Random, type Transport, unit } from '@tenon/runtime'
import { EventLog } from '../../simulation/event-log.ts'
import { faultyApi } from '../../simulation/faults/api-faults.ts'
import { Weather } from '../../simulation/faults/weather.ts'
import { WrongViews } from '../../simulation/faults/wrong-views.ts'

const longestDelayMs = 5 * 60_000

export class HubTrouble {
  readonly #clock: Clock
  readonly #dice: Random
  readonly #weather: Weather
  readonly #log: EventLog
  /** What the process started last hears of the hub. */
  #views = new WrongViews()
  #untilMs = 0
  #kind: 'away' | 'refuses' | 'slow' = 'away'
  /** Requests that were not answered by the hub. */
  #failed = 0

  constructor(clock: Clock, dice: Random, hasFaults: boolean) {
    this.#clock = clock
    this.#dice = dice
    this.#log = new EventLog(clock)
    this.#weather = new Weather(clock, dice.fork('weather'), {
      faults: hasFaults ? 'high' : 'none',
      // Nobody can act on answers that lie.
      withoutFaults: ['wrongReply'],
    })
  }

  /** Requests and watches that failed. */
  get failed(): number {
    return [...this.#weather.struck().values()].reduce((sum, each) => sum + each, this.#failed)
  }

  /** The hub cannot be reached, refuses everything, or is slow. */
  begin(forMs: number): void {
    const all = ['away', 'refuses', 'slow'] as const
    this.#kind = all[integerBetween(this.#dice, 0, all.length - 1)] ?? 'away'
    this.#untilMs = this.#clock.monotonic() + forMs
    if (this.#kind === 'away') this.#views.expire('*')
  }

  /** Watches of one kind, or of all, are late. */
  delay(forMs: number): void {
    const views = this.#views
    const watched = views.watched()
    const plural = watched[integerBetween(this.#dice, 0, watched.length)] ?? '*'
    views.late(plural, integerBetween(this.#dice, 0, longestDelayMs))
    this.#clock.after(forMs, () => views.late(plural, 0))
  }

  /** Watches of one kind, or of all, end, so that it is listed again. */
  cut(): void {
    const watched = this.#views.watched()
    this.#views.expire(watched[integerBetween(this.#dice, 0, watched.length)] ?? '*')
  }

  clear(): void {
    this.#untilMs = 0
    this.#weather.clearUp()
    this.#views.stopAll()
  }

  /** The connection of a new process. */
  over(hub: Transport): Transport {
    this.#views = new WrongViews()
    const deps = { weather: this.#weather, clock: this.#clock, log: this.#log }
    const inner = this.#views.path(faultyApi(hub, deps), this.#clock)
    return {
      send: async (request, signal) => {
        if (this.#clock.monotonic() >= this.#untilMs) return await inner.send(request, signal)
        if (this.#kind === 'slow') {
          await this.#clock.sleep(integerBetween(this.#dice, 100, 20_000), signal)
          return await inner.send(request, signal)
        }
        if (this.#kind === 'refuses' && unit(this.#dice) < 0.5) return await inner.send(request, signal)
        this.#failed++
        if (this.#kind === 'refuses') return forbidden
        throw new Error('connection reset by peer')
      },
    }
  }
}

const forbidden = {
  status: 403,
  headers: { 'content-type': 'application/json' },
  body: oneChunk(
    JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', code: 403 }),
  ),
}
