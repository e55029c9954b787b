/** Schedules faults from the seed: storms between calm periods. */
import { type Clock, integerBetween, type Random, unit } from '@tenon/runtime'
import type { FaultKind, FaultLevel, Story } from '../story.ts'

/** Probability that a fault of the kind strikes an occasion (a request, a watch event, a minute) in a storm. */
const stormRates: Readonly<Record<FaultKind, number>> = {
  conflict: 0.1,
  throttle: 0.15,
  serverError: 0.15,
  lostRequest: 0.1,
  lostReply: 0.15,
  timeout: 0.05,
  slowList: 0.5,
  staleList: 0.3,
  wrongReply: 0.1,
  watchDrop: 0.05,
  watchGone: 0.02,
  watchDelay: 1,
  cloudRefusal: 0.25,
  cloudLostRequest: 0.15,
  cloudLostReply: 0.25,
  cloudWrongReply: 0.15,
  drought: 0.5,
  failedOperation: 0.25,
  failedDeletion: 0.25,
  hangingOperation: 0.25,
  neverBoots: 0.25,
  neverJoins: 0.25,
  neverReady: 0.25,
  smallGuests: 0.5,
  upstreamError: 0.25,
  slowSync: 0.25,
  groupVanishes: 0.25,
  groupDeleted: 0.15,
  groupResized: 0.25,
  ownAutoscaler: 0.1,
  foreignGroup: 0.5,
  laggingController: 0.1,
  machineDeleted: 0.15,
  replicasEdited: 0.1,
  templateRolled: 0.1,
  deploymentPaused: 0.1,
  instanceDeath: 0.15,
  silentKubelet: 0.3,
  driverCrash: 0.3,
  crash: 0.25,
  reconfigure: 0.1,
  pause: 0.15,
  clockJump: 0.1,
  starvation: 0.15,
  lateWatch: 0.3,
  wrongList: 0.3,
  falseDeletion: 0.3,
  otherCluster: 0.05,
  laggingCloud: 0.5,
  lyingCloud: 0.3,
  stubbornScheduler: 0.15,
  renamedKubelet: 0.1,
  kubeletLabels: 0,
}

interface Climate {
  readonly meanGapMs: number
  readonly stormMs: readonly [least: number, most: number]
  /** Fraction of the storm's rate in calm periods. */
  readonly calmShare: number
  /** Factor on the storm's rate. */
  readonly force: number
}

const minute = 60_000
const climates: Readonly<Record<Exclude<FaultLevel, 'none'>, Climate>> = {
  low: { meanGapMs: 90 * minute, stormMs: [minute, 5 * minute], calmShare: 0.002, force: 0.5 },
  // For stories with few kinds of faults, which should strike soon.
  storm: { meanGapMs: 3 * minute, stormMs: [2 * minute, 10 * minute], calmShare: 0.02, force: 1 },
  high: { meanGapMs: 30 * minute, stormMs: [minute, 10 * minute], calmShare: 0.02, force: 1 },
}

interface Forecast {
  readonly random: Random
  isStorm: boolean
  untilMs: number
}

/** The weather of one run. */
export class Weather {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #climate: Climate | undefined
  readonly #forecasts = new Map<FaultKind, Forecast>()
  readonly #without: ReadonlySet<FaultKind>
  readonly #random: Random
  readonly #struck = new Map<FaultKind, number>()
  #isOver = false

  constructor(
    clock: Pick<Clock, 'monotonic'>,
    random: Random,
    story: Pick<Story, 'faults' | 'withoutFaults'>,
  ) {
    this.#clock = clock
    this.#climate = story.faults === 'none' ? undefined : climates[story.faults]
    this.#without = new Set(story.withoutFaults)
    this.#random = random
  }

  /** Whether a fault of the kind strikes this occasion. */
  strikes(kind: FaultKind): boolean {
    const climate = this.#climate
    if (climate === undefined || this.#isOver || this.#without.has(kind)) return false
    const forecast = this.#at(kind, climate)
    const rate = stormRates[kind] * climate.force * (forecast.isStorm ? 1 : climate.calmShare)
    if (unit(forecast.random) >= rate) return false
    this.#struck.set(kind, (this.#struck.get(kind) ?? 0) + 1)
    return true
  }

  /** Whether the kind has a storm now. */
  isStorm(kind: FaultKind): boolean {
    if (this.#climate === undefined || this.#isOver || this.#without.has(kind)) return false
    return this.#at(kind, this.#climate).isStorm
  }

  /** The random source of a kind, for the details of its faults. */
  source(kind: FaultKind): Random {
    return this.#random.fork(`${kind}/detail/${this.#struck.get(kind) ?? 0}`)
  }

  /** No more faults from now on. */
  clearUp(): void {
    this.#isOver = true
  }

  /** How often each kind has struck. */
  struck(): ReadonlyMap<FaultKind, number> {
    return this.#struck
  }

  #at(kind: FaultKind, climate: Climate): Forecast {
    const now = this.#clock.monotonic()
    let forecast = this.#forecasts.get(kind)
    if (forecast === undefined) {
      const random = this.#random.fork(kind)
      forecast = { random, isStorm: false, untilMs: gap(random, climate) }
      this.#forecasts.set(kind, forecast)
    }
    while (forecast.untilMs <= now) {
      forecast.isStorm = !forecast.isStorm
      const [least, most] = climate.stormMs
      forecast.untilMs += forecast.isStorm
        ? integerBetween(forecast.random, least, most)
        : gap(forecast.random, climate)
    }
    return forecast
  }
}

function gap(random: Random, { meanGapMs }: Climate): number {
  return integerBetween(random, Math.floor(meanGapMs / 4), Math.floor(meanGapMs * 1.75))
}
