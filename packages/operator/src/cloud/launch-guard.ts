/**
 * Launches around shortages: what is short is found out by few launches, the others
 * take the next offering of their claim at once, and the next decision counts on neither.
 */
import {
  type InstanceType,
  labels,
  type NodeClaim,
  type OfferingRef,
  type Unavailability,
  wellKnownLabels,
} from '@tenon/api'
import { type ClaimOffering, offeringKey, offeringRefs, offeringsOf } from '@tenon/engine'
import {
  type CloudProvider,
  isProviderError,
  type OfferingNews,
  ProviderError,
  type ProviderInstance,
  type RefusedOffering,
} from '@tenon/provider'
import { type Clock, Listeners } from '@tenon/runtime'
import { OfferingHealth } from './offering-health.ts'
import { LaunchWindows } from './launch-windows.ts'

/** Offerings that one launch tries in vain before its claim is given up. */
const attempts = 5
/** Answers that are kept per type: they differ by what is short and until when. */
const reducedKept = 16
/** Of what another launch is to try. */
const leftToOthers: Unavailability = { because: 'failed lately' }

type Create = (instanceTypes: readonly InstanceType[]) => Promise<ProviderInstance>

/** How far a {@link LaunchGuard} goes. */
export interface LaunchGuardOptions {
  /** False to heed only what the provider itself says about how long it refuses. */
  readonly learns?: boolean
}

/** One for all launches of a process. */
export class LaunchGuard {
  readonly health: OfferingHealth = new OfferingHealth()
  readonly #clock: Clock
  readonly #wellKnown: ReadonlySet<string>
  readonly #windows: LaunchWindows
  readonly #learns: boolean
  /** Offerings that another process had on trial. */
  #recalled: readonly OfferingRef[] = []
  /** The same answer for the same type and the same shortages is the same object: decisions keep types. */
  readonly #reduced = new WeakMap<InstanceType, Map<string, InstanceType>>()
  /** Every offering that was refused. */
  readonly refused: Listeners<OfferingRef> = new Listeners()

  constructor(
    provider: Pick<CloudProvider, 'wellKnownLabels' | 'reservationLabel' | 'onOfferingNews'>,
    clock: Clock,
    { learns = true }: LaunchGuardOptions = {},
  ) {
    this.#clock = clock
    const { reservationLabel, wellKnownLabels: own } = provider
    const reserved = reservationLabel === undefined ? [] : [reservationLabel]
    this.#wellKnown = new Set([...wellKnownLabels, ...own, ...reserved])
    this.#windows = new LaunchWindows(clock)
    this.#learns = learns
    provider.onOfferingNews?.((news) => {
      this.#hear(news)
    })
  }

  /** The types without what decisions should not count on now. */
  usable(types: readonly InstanceType[]): readonly InstanceType[] {
    const nowMs = this.#clock.now()
    this.health.sweep(nowMs)
    return this.#without(types, (offering) => this.health.unavailability(offering, nowMs))
  }

  /**
   * Launches a claim with the cheapest of its offerings that may be tried.
   * @param types of the claim's NodePool.
   * @param create asks the cloud, with the types it may choose from.
   * @throws ProviderError of the last attempt; `insufficientCapacity` without one when nothing may be tried.
   */
  async launch(
    claim: NodeClaim,
    types: readonly InstanceType[],
    create: Create,
    signal?: AbortSignal,
  ): Promise<ProviderInstance> {
    const choices = offeringsOf(claim.spec.requirements, types, this.#wellKnown)
    // What the core knows nothing of, the provider may.
    if (choices.length === 0) return await this.noting(() => create(types))
    if (!this.#learns) return await this.noting(() => create(this.usable(types)))
    for (let attempt = 1; ; attempt++) {
      const choice = await this.#turn(claim, choices, signal)
      const outcome = await this.#try(choice, types, create)
      if ('instance' in outcome) return outcome.instance
      if (!outcome.isShort || attempt === attempts) throw outcome.error
    }
  }

  /** Offerings that failed lately: one launch tries each of them before decisions count on it again. */
  onTrial(): readonly OfferingRef[] {
    return this.#learns ? [...this.health.troubles(this.#clock.now()), ...this.#recalled] : []
  }

  /** Takes over offerings that another process has on trial. */
  putOnTrial(offerings: readonly OfferingRef[]): void {
    this.#recalled = offerings
  }

  /** Launches as the provider wants it; what it is refused is remembered all the same. */
  async noting(launch: () => Promise<ProviderInstance>): Promise<ProviderInstance> {
    try {
      return await launch()
    } catch (error) {
      if (isProviderError(error, 'insufficientCapacity')) this.#refuse(error.offerings, error.message)
      throw error
    }
  }

  #hear(news: OfferingNews): void {
    if (news.kind === 'released') this.health.released(this.#clock.now())
    else this.#refuse(news.offerings, news.because)
  }

  #refuse(offerings: readonly RefusedOffering[], because: string): void {
    for (const offering of offerings) {
      if (!this.#learns && offering.pauseMs === undefined) continue
      this.health.refused(offering, this.#clock.now(), because)
      this.refused.notify(offering)
    }
  }

  /** Waits for the turn of a launch and answers with what it may try. */
  async #turn(
    claim: NodeClaim,
    choices: readonly ClaimOffering[],
    signal: AbortSignal | undefined,
  ): Promise<OfferingRef> {
    for (let isPatient = true; ; ) {
      const nowMs = this.#clock.now()
      const usable = choices.find(({ ref }) => this.health.isUsable(ref, nowMs))?.ref
      if (usable === undefined) {
        const probed = choices.find(({ ref }) => this.health.isProbed(ref))?.ref
        if (probed !== undefined) {
          await this.#windows.news(offeringKey(probed), signal)
          continue
        }
        const names = [...new Set(choices.map(({ ref }) => offeringKey(ref)))].slice(0, 5).join(', ')
        throw new ProviderError(
          'insufficientCapacity',
          `NodeClaim ${claim.metadata.name}: ${names} failed recently and will be retried later`,
        )
      }
      const key = offeringKey(usable)
      if (!isPatient) this.#windows.force(key)
      if (!isPatient || this.#windows.enter(key)) {
        this.health.begin(usable, nowMs)
        return usable
      }
      isPatient = await this.#windows.news(key, signal)
    }
  }

  async #try(
    choice: OfferingRef,
    types: readonly InstanceType[],
    create: Create,
  ): Promise<
    { readonly instance: ProviderInstance } | { readonly error: unknown; readonly isShort: boolean }
  > {
    const key = offeringKey(choice)
    // Beside the one whose turn it is, the provider chooses only among what nothing is known against.
    const offered = this.#without(types, (offering) =>
      offeringKey(offering) === key || this.health.isTrusted(offering) ? undefined : leftToOthers,
    )
    let outcome: 'launched' | 'refused' | 'other' = 'other'
    try {
      const instance = await create(offered)
      const made = offeringOf(instance)
      this.health.succeeded(made, this.#clock.now())
      if (offeringKey(made) === key) outcome = 'launched'
      return { instance }
    } catch (error) {
      if (!isProviderError(error, 'insufficientCapacity')) return { error, isShort: false }
      this.#refuse(error.offerings, error.message)
      if (error.offerings.some((offering) => offeringKey(offering) === key)) outcome = 'refused'
      return { error, isShort: outcome === 'refused' }
    } finally {
      this.health.ended(choice)
      this.#windows.leave(key, outcome)
    }
  }

  #without(
    types: readonly InstanceType[],
    whyOut: (offering: OfferingRef) => Unavailability | undefined,
  ): readonly InstanceType[] {
    const troubled = new Set(this.health.troubles(this.#clock.now()).map(({ instanceType }) => instanceType))
    if (troubled.size === 0) return types
    return types.map((type) => {
      if (!troubled.has(type.name)) return type
      const out = offeringRefs(type).map(whyOut)
      return out.some((why) => why !== undefined) ? this.#reducedType(type, out) : type
    })
  }

  #reducedType(type: InstanceType, out: readonly (Unavailability | undefined)[]): InstanceType {
    const known = this.#reduced.get(type) ?? new Map<string, InstanceType>()
    this.#reduced.set(type, known)
    const name = JSON.stringify(out)
    let reduced = known.get(name)
    if (reduced === undefined) {
      const offerings = type.offerings.map((offering, i) => {
        const unavailability = out[i]
        if (unavailability === undefined || !offering.available) return offering
        return { ...offering, available: false, unavailability }
      })
      reduced = { ...type, offerings }
      if (known.size >= reducedKept) known.clear()
      known.set(name, reduced)
    }
    return reduced
  }
}

function offeringOf({ labels: tags }: ProviderInstance): OfferingRef {
  return {
    instanceType: tags[labels.instanceType] ?? '',
    zone: tags[labels.zone] ?? '',
    capacityType: tags[labels.capacityType] ?? '',
  }
}
