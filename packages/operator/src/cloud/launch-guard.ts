import {
  type InstanceType,
  labels,
  type LaunchScope,
  type NodeClaim,
  type NodePool,
  type OfferingRef,
  type Unavailability,
  wellKnownLabels,
} from '@tenon/api'
import {
  type ClaimOffering,
  type LaunchPlace,
  offeringKey,
  offeringRefs,
  offeringsOf,
  scopeKey,
  scopesOf,
} from '@tenon/engine'
import { type CloudProvider, type OfferingNews, ProviderError, type ProviderInstance } from '@tenon/provider'
import { type Clock, Listeners } from '@tenon/runtime'
import { classScope, isOfOfferings, typeScope, verdictOn } from './launch-blame.ts'
import { LaunchWindows } from './launch-windows.ts'
import { OfferingHealth, type RefusedScope } from './offering-health.ts'
import { balanceCostAnnotation, type ZoneBalance, type ZoneChoice } from './zone-balance.ts'

/** Attempts before a claim is given up. */
const attempts = 5
/** If this many instance types of a node class fail, the node class is blamed. */
const typesOfOneClass = 2
/** After this time of unclear failures, the node class is blamed. */
const unclearMs = 10_000
/** Unclear failures further apart than this are unrelated. */
const unrelatedMs = 2 * 60_000
/** Of offerings that another launch is trying. */
const leftToOthers: Unavailability = { because: 'failed lately' }
/** Of offerings that cost no less in a zone with more nodes, or more than those. */
const leftForBalance: Unavailability = { because: 'another zone has fewer nodes of the NodePool' }

type Create = (instanceTypes: readonly InstanceType[]) => Promise<ProviderInstance>

export interface LaunchGuardOptions {
  /** False: only pauses that the provider gives count. */
  readonly learns?: boolean
  /** Decides between zones of equal price; absent: the provider does. Has no effect unless the guard learns. */
  readonly zones?: ZoneBalance
}

export interface RefusedLaunch {
  readonly scope: LaunchScope
  /** Undefined if the provider found the refusal outside launches. */
  readonly nodePool?: string
  readonly because: string
}

/**
 * Launches around offerings that fail: a few launches find a failure, the others use the next offering of their claim at once,
 * and the next decision avoids it. One for all launches of a process.
 */
export class LaunchGuard {
  readonly health: OfferingHealth = new OfferingHealth()
  readonly #clock: Clock
  readonly #wellKnown: ReadonlySet<string>
  readonly #windows: LaunchWindows
  readonly #learns: boolean
  readonly #zones: ZoneBalance | undefined
  /** Offerings that another process had on trial. */
  #recalled: readonly LaunchScope[] = []
  readonly #reduced = new ReducedTypes()
  /** Unclear failures since the last success, by node class. */
  readonly #unclear = new Map<string, { readonly sinceMs: number; readonly lastMs: number }>()
  /** Time of the last success, by node class. */
  readonly #succeededMs = new Map<string, number>()
  /** Claims that may have an instance, by UID, and until when: their launch continues whatever fails. */
  readonly #begun = new Map<string, number>()
  readonly refused: Listeners<RefusedLaunch> = new Listeners()
  /** Notified if something may be launched before its pause ends. */
  readonly opened: Listeners<undefined> = new Listeners()

  constructor(
    provider: Pick<CloudProvider, 'wellKnownLabels' | 'reservationLabel' | 'onOfferingNews'>,
    clock: Clock,
    { learns = true, zones }: LaunchGuardOptions = {},
  ) {
    this.#clock = clock
    const { reservationLabel, wellKnownLabels: own } = provider
    const reserved = reservationLabel === undefined ? [] : [reservationLabel]
    this.#wellKnown = new Set([...wellKnownLabels, ...own, ...reserved])
    this.#windows = new LaunchWindows(clock)
    this.#learns = learns
    this.#zones = zones
    provider.onOfferingNews?.((news) => {
      this.#hear(news)
    })
  }

  /** The types, without offerings that decisions for the NodePool should avoid now. */
  usable(types: readonly InstanceType[], pool: NodePool): readonly InstanceType[] {
    const nowMs = this.#clock.now()
    this.health.sweep(nowMs)
    for (const [uid, untilMs] of this.#begun) if (untilMs <= nowMs) this.#begun.delete(uid)
    return this.#usable(types, placeOfPool(pool))
  }

  /** Offerings that the NodePool allows, cheapest first. @param usable of {@link usable}. */
  offeringsFor({ spec }: NodePool, usable: readonly InstanceType[]): readonly ClaimOffering[] {
    return offeringsOf(spec.template.spec.requirements, usable, this.#wellKnown)
  }

  /**
   * Launches a claim with the cheapest offering that may be tried.
   * @param types of the claim's NodePool; none while they are not known.
   * @param create asks the cloud, with the types it may choose from.
   * @throws ProviderError of the last attempt, or `insufficientCapacity` if nothing may be tried.
   */
  async launch(
    claim: NodeClaim,
    types: readonly InstanceType[],
    create: Create,
    signal?: AbortSignal,
  ): Promise<ProviderInstance> {
    const choices = offeringsOf(claim.spec.requirements, types, this.#wellKnown)
    const place = placeOf(claim)
    // Without types, the provider chooses; and if an instance may exist, it must be found whatever fails.
    if (!this.#learns)
      return await this.#launchWithoutChoice(claim, undefined, () => create(this.#usable(types, place)))
    if (choices.length === 0 || this.#begun.has(claim.metadata.uid ?? ''))
      return await this.#launchWithoutChoice(
        claim,
        choices[0]?.ref ?? (types.length > 0 ? 'none' : undefined),
        () => create(types),
      )
    for (let attempt = 1; ; attempt++) {
      const choice = await this.#choose(claim, choices, signal)
      const outcome = await this.#try(claim, { choice, choices }, types, create)
      if ('instance' in outcome) return outcome.instance
      if (!outcome.isShort) throw outcome.error
      if (attempt < attempts) continue
      if (!isOfOfferings(outcome.error)) this.#refuse([classScope(place)], outcome.error, place.nodePool)
      throw outcome.error
    }
  }

  /** What failed recently: one launch tries each before decisions use it again. */
  onTrial(): readonly LaunchScope[] {
    return this.#learns ? [...this.health.troubles(this.#clock.now()), ...this.#recalled] : []
  }

  /** Whether one launch of the offering for the NodePool tries it for all others. */
  onTrialFor(pool: NodePool, offering: OfferingRef): boolean {
    const place = placeOfPool(pool)
    return this.#learns && !scopesOf(offering, place).every((scope) => this.health.isTrusted(scope))
  }

  putOnTrial(offerings: readonly LaunchScope[]): void {
    this.#recalled = offerings
  }

  /** Forgets failures of a node class or a NodePool that was changed. */
  changed(scope: Pick<LaunchScope, 'nodeClass' | 'nodePool'>): void {
    const { nodeClass, nodePool } = scope
    const isForgiven = this.health.forgive(
      (each) =>
        (nodeClass !== undefined && each.nodeClass === nodeClass) ||
        (nodePool !== undefined && each.nodePool === nodePool),
    )
    if (nodeClass !== undefined) this.#unclear.delete(nodeClass)
    if (isForgiven) this.opened.notify(undefined)
  }

  /** Refusals are remembered all the same. */
  async #launchWithoutChoice(
    claim: NodeClaim,
    choice: OfferingRef | 'none' | undefined,
    launch: () => Promise<ProviderInstance>,
  ): Promise<ProviderInstance> {
    const beganMs = this.#clock.now()
    try {
      const instance = await launch()
      this.#succeeded(claim, offeringOf(instance))
      return instance
    } catch (error) {
      this.#failed(claim, error, choice, beganMs)
      throw error
    }
  }

  #hear(news: OfferingNews): void {
    if (news.kind === 'refused') this.#refuse(news.offerings, news.because)
    else {
      this.health.released(this.#clock.now())
      this.opened.notify(undefined)
    }
  }

  #refuse(scopes: readonly RefusedScope[], error: unknown, nodePool?: string): void {
    const because = error instanceof Error ? error.message : String(error)
    for (const scope of scopes) {
      if (!this.#learns && scope.pauseMs === undefined) continue
      this.health.refused(scope, this.#clock.now(), because)
      this.refused.notify({ scope, because, ...(nodePool !== undefined && { nodePool }) })
    }
  }

  #succeeded(claim: NodeClaim, made: OfferingRef): void {
    const place = placeOf(claim)
    this.#begun.delete(claim.metadata.uid ?? '')
    const { nodeClass = '' } = classScope(place)
    this.#unclear.delete(nodeClass)
    this.#succeededMs.set(nodeClass, this.#clock.now())
    if (this.health.isSound) return
    for (const scope of scopesOf(made, place)) this.health.succeeded(scope, this.#clock.now())
    this.opened.notify(undefined)
  }

  /** @returns whether the claim may be launched with another offering at once. */
  #failed(
    claim: NodeClaim,
    error: unknown,
    choice: OfferingRef | 'none' | undefined,
    beganMs: number,
  ): boolean {
    const place = placeOf(claim)
    const verdict = verdictOn(error, place, choice)
    const uid = claim.metadata.uid ?? ''
    if (verdict.kind === 'refused') {
      this.#begun.delete(uid)
      this.#refuse(verdict.scopes, error, place.nodePool)
      if (verdict.isGuess && !verdict.isShort && this.#failingTypes(place) >= typesOfOneClass)
        this.#refuse([classScope(place)], error, place.nodePool)
      return verdict.isShort
    }
    if (this.#learns) this.#begun.set(uid, this.#clock.now() + 60 * 60_000)
    if (verdict.kind === 'unclear') this.#noteUnclear(place, error, beganMs)
    return false
  }

  #failingTypes(place: LaunchPlace): number {
    const { nodeClass } = classScope(place)
    const troubles = this.health.troubles(this.#clock.now())
    return troubles.filter((each) => each.nodeClass === nodeClass && each.instanceType !== '').length
  }

  /** @param beganMs when the launch began: a slow launch counts from then. */
  #noteUnclear(place: LaunchPlace, error: unknown, beganMs: number): void {
    const scope = classScope(place)
    const { nodeClass = '' } = scope
    const nowMs = this.#clock.now()
    const before = this.#unclear.get(nodeClass)
    const isRelated = before !== undefined && nowMs - before.lastMs <= unrelatedMs
    const sinceMs = Math.max(
      isRelated ? before.sinceMs : beganMs,
      this.#succeededMs.get(nodeClass) ?? Number.NEGATIVE_INFINITY,
    )
    this.#unclear.set(nodeClass, { sinceMs, lastMs: nowMs })
    if (nowMs - sinceMs >= unclearMs) this.#refuse([scope], error, place.nodePool)
  }

  /** Waits until the launch may try an offering. @returns the offering. */
  async #choose(
    claim: NodeClaim,
    choices: readonly ClaimOffering[],
    signal: AbortSignal | undefined,
  ): Promise<ZoneChoice> {
    const place = placeOf(claim)
    for (let isPatient = true; ; ) {
      const nowMs = this.#clock.now()
      const isUsable = (scope: LaunchScope) => this.health.isUsable(scope, nowMs)
      const usable = Iterator.from(choices).filter(({ ref }) => scopesOf(ref, place).every(isUsable))
      const choice = this.#zones === undefined ? cheapestOf(usable) : this.#zones.choose(claim, usable)
      if (choice === undefined) {
        const probed = choices
          .flatMap(({ ref }) => scopesOf(ref, place))
          .find((scope) => this.health.isProbed(scope))
        if (probed !== undefined) {
          await this.#windows.changed(scopeKey(probed), signal)
          continue
        }
        throw this.#nothingLeft(claim, choices)
      }
      const key = offeringKey(choice.ref)
      if (!isPatient) this.#windows.force(key)
      if (!isPatient || this.#windows.enter(key)) {
        for (const scope of scopesOf(choice.ref, place)) this.health.begin(scope, nowMs)
        this.#zones?.count(claim, choice.ref.zone)
        return choice
      }
      isPatient = await this.#windows.changed(key, signal)
    }
  }

  #nothingLeft(claim: NodeClaim, choices: readonly ClaimOffering[]): ProviderError {
    const names = [...new Set(choices.map(({ ref }) => offeringKey(ref)))].slice(0, 5).join(', ')
    const [why] = choices.map(({ ref }) => this.#whyOut(ref, placeOf(claim)))
    return new ProviderError(
      'insufficientCapacity',
      `NodeClaim ${claim.metadata.name}: ${names} failed recently and will be retried later${why === undefined ? '' : `: ${why.because}`}`,
    )
  }

  async #try(
    claim: NodeClaim,
    {
      choice: { ref: choice, ...chosen },
      choices,
    }: { readonly choice: ZoneChoice; readonly choices: readonly ClaimOffering[] },
    types: readonly InstanceType[],
    create: Create,
  ): Promise<
    { readonly instance: ProviderInstance } | { readonly error: unknown; readonly isShort: boolean }
  > {
    const key = offeringKey(choice)
    const place = placeOf(claim)
    const inZone = chosen.isBalanced
      ? this.#reduced.toZone(types, choices, { ref: choice, ...chosen })
      : types
    // The provider may also choose offerings without known failures.
    const offered = this.#without(inZone, (offering) =>
      offeringKey(offering) === key ||
      scopesOf(offering, place).every((scope) => this.health.isTrusted(scope))
        ? undefined
        : leftToOthers,
    )
    const beganMs = this.#clock.now()
    let outcome: 'launched' | 'refused' | 'other' = 'other'
    try {
      const instance = await create(offered)
      const made = offeringOf(instance)
      this.#succeeded(claim, made)
      if (offeringKey(made) !== key) return { instance }
      outcome = 'launched'
      return { instance: withBalanceCost(instance, chosen) }
    } catch (error) {
      this.#zones?.forget(claim)
      const isShort = this.#failed(claim, error, choice, beganMs)
      // The cloud named only offerings that the claim does not allow, so they are not the cause.
      if (isOfOfferings(error) && !isAmong(choices, error.offerings))
        this.#refuse([typeScope(place, choice)], error, place.nodePool)
      const nowMs = this.#clock.now()
      const isRefused = scopesOf(choice, place).some((scope) => !this.health.isUsable(scope, nowMs))
      if (isRefused) outcome = 'refused'
      return { error, isShort: isShort && isRefused }
    } finally {
      for (const scope of scopesOf(choice, place)) this.health.ended(scope)
      this.#windows.leave(key, outcome)
    }
  }

  #usable(types: readonly InstanceType[], place: LaunchPlace): readonly InstanceType[] {
    return this.#without(types, (offering) => this.#whyOut(offering, place))
  }

  #whyOut(offering: OfferingRef, place: LaunchPlace): Unavailability | undefined {
    const nowMs = this.#clock.now()
    for (const scope of scopesOf(offering, place)) {
      const why = this.health.unavailability(scope, nowMs)
      if (why !== undefined) return why
    }
    return undefined
  }

  #without(
    types: readonly InstanceType[],
    whyOut: (offering: OfferingRef) => Unavailability | undefined,
  ): readonly InstanceType[] {
    return this.health.isSound ? types : this.#reduced.of(types, whyOut)
  }
}

function placeOf({ metadata, spec }: NodeClaim): LaunchPlace {
  return { nodePool: metadata.labels?.[labels.nodePool] ?? '', nodeClassRef: spec.nodeClassRef }
}

function placeOfPool({ metadata, spec }: NodePool): LaunchPlace {
  return { nodePool: metadata.name, nodeClassRef: spec.template.spec.nodeClassRef }
}

function isAmong(choices: readonly ClaimOffering[], offerings: readonly OfferingRef[]): boolean {
  const keys = new Set(offerings.map(offeringKey))
  return choices.some(({ ref }) => keys.has(offeringKey(ref)))
}

function offeringOf({ labels: tags }: ProviderInstance): OfferingRef {
  return {
    instanceType: tags[labels.instanceType] ?? '',
    zone: tags[labels.zone] ?? '',
    capacityType: tags[labels.capacityType] ?? '',
  }
}

function cheapestOf(usable: Iterable<ClaimOffering>): ZoneChoice | undefined {
  for (const offering of usable) return { ...offering, isBalanced: false, morePerHour: 0 }
  return undefined
}

/** The instance with a note of what it costs more than in another zone. */
function withBalanceCost(
  instance: ProviderInstance,
  { morePerHour }: Pick<ZoneChoice, 'morePerHour'>,
): ProviderInstance {
  if (morePerHour <= 0) return instance
  const note = { [balanceCostAnnotation]: morePerHour.toFixed(9) }
  return { ...instance, annotations: { ...instance.annotations, ...note } }
}

/** Memoized results per type. */
const kept = 16

/** Types without some of their offerings, memoized: decisions keep what they compiled of types. */
class ReducedTypes {
  readonly #known = new WeakMap<InstanceType, Map<string, InstanceType>>()

  /** @param whyOut why an offering is not available; undefined to keep it as it is. */
  of(
    types: readonly InstanceType[],
    whyOut: (offering: OfferingRef) => Unavailability | undefined,
  ): readonly InstanceType[] {
    return types.map((type) => {
      const out = offeringRefs(type).map(whyOut)
      return out.some((why) => why !== undefined) ? this.#reduced(type, out) : type
    })
  }

  /** The types of `choices` with only those that are in the zone of the chosen one and cost as much. */
  toZone(
    types: readonly InstanceType[],
    choices: readonly ClaimOffering[],
    { ref: { zone }, pricePerHour }: ZoneChoice,
  ): readonly InstanceType[] {
    const alike = choices.filter((each) => each.ref.zone === zone && each.pricePerHour === pricePerHour)
    const keys = new Set(alike.map(({ ref }) => offeringKey(ref)))
    const names = new Set(choices.map(({ ref }) => ref.instanceType))
    const whyOut = (offering: OfferingRef) => (keys.has(offeringKey(offering)) ? undefined : leftForBalance)
    return types.map((type) =>
      names.has(type.name) ? this.#reduced(type, offeringRefs(type).map(whyOut)) : type,
    )
  }

  #reduced(type: InstanceType, out: readonly (Unavailability | undefined)[]): InstanceType {
    const known = this.#known.get(type) ?? new Map<string, InstanceType>()
    this.#known.set(type, known)
    const name = JSON.stringify(out)
    const found = known.get(name)
    if (found !== undefined) return found
    const offerings = type.offerings.map((offering, i) => {
      const unavailability = out[i]
      if (unavailability === undefined || !offering.available) return offering
      return { ...offering, available: false, unavailability }
    })
    const reduced = { ...type, offerings }
    if (known.size >= kept) known.clear()
    known.set(name, reduced)
    return reduced
  }
}
