/**
 * Launches around what fails: it is found out by few launches, the others take the next offering of their claim at
 * once, and the next decision counts on neither.
 */
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

/** Attempts of one launch before its claim is given up. */
const attempts = 5
/** After so many instance types of a node class failed, the node class itself is taken to fail. */
const typesOfOneClass = 2
/** After so long of unclear failures, the node class is taken to fail. */
const unclearMs = 10_000
/** Unclear failures further apart than this are unrelated. */
const unrelatedMs = 2 * 60_000
/** The reason of offerings that another launch is trying. */
const leftToOthers: Unavailability = { because: 'failed lately' }

type Create = (instanceTypes: readonly InstanceType[]) => Promise<ProviderInstance>

export interface LaunchGuardOptions {
  /** False to use only the pauses that the provider itself gives. */
  readonly learns?: boolean
}

/** A refused launch. */
export interface RefusedLaunch {
  readonly scope: LaunchScope
  /** Undefined if the refusal was found outside launches. */
  readonly nodePool?: string
  readonly because: string
}

/** One for all launches of a process. */
export class LaunchGuard {
  readonly health: OfferingHealth = new OfferingHealth()
  readonly #clock: Clock
  readonly #wellKnown: ReadonlySet<string>
  readonly #windows: LaunchWindows
  readonly #learns: boolean
  /** Offerings that another process had on trial. */
  #recalled: readonly LaunchScope[] = []
  readonly #reduced = new ReducedTypes()
  /** Unclear failures since the last success, by node class. */
  readonly #unclear = new Map<string, { readonly sinceMs: number; readonly lastMs: number }>()
  /** Time of the last success, by node class. */
  readonly #succeededMs = new Map<string, number>()
  /** Claims that may have an instance, by UID, with the end of that time: they go on whatever else fails. */
  readonly #begun = new Map<string, number>()
  /** Notified of each refusal. */
  readonly refused: Listeners<RefusedLaunch> = new Listeners()
  /** Notified when something may be launched again before its pause ends. */
  readonly opened: Listeners<undefined> = new Listeners()

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

  /** The types without offerings that decisions for the NodePool should not count on now. */
  usable(types: readonly InstanceType[], pool: NodePool): readonly InstanceType[] {
    const nowMs = this.#clock.now()
    this.health.sweep(nowMs)
    for (const [uid, untilMs] of this.#begun) if (untilMs <= nowMs) this.#begun.delete(uid)
    return this.#usable(types, placeOfPool(pool))
  }

  /** Offerings that the NodePool's requirements allow and that could be launched now, cheapest first. */
  offeringsFor({ spec }: NodePool, usable: readonly InstanceType[]): readonly ClaimOffering[] {
    return offeringsOf(spec.template.spec.requirements, usable, this.#wellKnown)
  }

  /**
   * Launches a claim with the cheapest of its offerings that may be tried.
   * @param types of the claim's NodePool; none while they are not known.
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
    const place = placeOf(claim)
    // The provider may know types that the core does not; and an instance that may exist is found whatever fails.
    if (!this.#learns) return await this.#untaught(claim, undefined, () => create(this.#usable(types, place)))
    if (choices.length === 0 || this.#begun.has(claim.metadata.uid ?? ''))
      return await this.#untaught(claim, choices[0]?.ref ?? (types.length > 0 ? 'none' : undefined), () =>
        create(types),
      )
    for (let attempt = 1; ; attempt++) {
      const choice = await this.#turn(claim, choices, signal)
      const outcome = await this.#try(claim, { choice, choices }, types, create)
      if ('instance' in outcome) return outcome.instance
      if (!outcome.isShort) throw outcome.error
      if (attempt < attempts) continue
      if (!isOfOfferings(outcome.error)) this.#refuse([classScope(place)], outcome.error, place.nodePool)
      throw outcome.error
    }
  }

  /** What failed lately: one launch tries each before decisions count on it again. */
  onTrial(): readonly LaunchScope[] {
    return this.#learns ? [...this.health.troubles(this.#clock.now()), ...this.#recalled] : []
  }

  /** Whether the next launch of an offering for the NodePool finds out for all others. */
  onTrialFor(pool: NodePool, offering: OfferingRef): boolean {
    const place = placeOfPool(pool)
    return this.#learns && !scopesOf(offering, place).every((scope) => this.health.isTrusted(scope))
  }

  /** Takes over the trials of another process. */
  putOnTrial(offerings: readonly LaunchScope[]): void {
    this.#recalled = offerings
  }

  /** A node class or a NodePool is another one now. */
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

  /** Launches without choosing an offering; refusals are remembered all the same. */
  async #untaught(
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

  /** @returns whether the same claim may be launched with something else at once. */
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

  /** @param beganMs when the launch began: a launch that takes long counts for as long. */
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

  /** Waits for the turn of a launch. @returns the offering that it may try. */
  async #turn(
    claim: NodeClaim,
    choices: readonly ClaimOffering[],
    signal: AbortSignal | undefined,
  ): Promise<OfferingRef> {
    const place = placeOf(claim)
    for (let isPatient = true; ; ) {
      const nowMs = this.#clock.now()
      const isUsable = (scope: LaunchScope) => this.health.isUsable(scope, nowMs)
      const usable = choices.find(({ ref }) => scopesOf(ref, place).every(isUsable))?.ref
      if (usable === undefined) {
        const probed = choices
          .flatMap(({ ref }) => scopesOf(ref, place))
          .find((scope) => this.health.isProbed(scope))
        if (probed !== undefined) {
          await this.#windows.news(scopeKey(probed), signal)
          continue
        }
        throw this.#nothingLeft(claim, choices)
      }
      const key = offeringKey(usable)
      if (!isPatient) this.#windows.force(key)
      if (!isPatient || this.#windows.enter(key)) {
        for (const scope of scopesOf(usable, place)) this.health.begin(scope, nowMs)
        return usable
      }
      isPatient = await this.#windows.news(key, signal)
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
    { choice, choices }: { readonly choice: OfferingRef; readonly choices: readonly ClaimOffering[] },
    types: readonly InstanceType[],
    create: Create,
  ): Promise<
    { readonly instance: ProviderInstance } | { readonly error: unknown; readonly isShort: boolean }
  > {
    const key = offeringKey(choice)
    const place = placeOf(claim)
    // Beside that offering, the provider may choose only among those without known failures.
    const offered = this.#without(types, (offering) =>
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
      if (offeringKey(made) === key) outcome = 'launched'
      return { instance }
    } catch (error) {
      const isShort = this.#failed(claim, error, choice, beganMs)
      // The cloud named offerings that the claim does not allow: they are not the reason.
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

/** Memoized results per type. */
const kept = 16

/** Types without some of their offerings. The same answer for the same type is the same object: decisions keep types. */
class ReducedTypes {
  readonly #known = new WeakMap<InstanceType, Map<string, InstanceType>>()

  /** @param whyOut why an offering is not available; undefined where nothing is to be changed. */
  of(
    types: readonly InstanceType[],
    whyOut: (offering: OfferingRef) => Unavailability | undefined,
  ): readonly InstanceType[] {
    return types.map((type) => {
      const out = offeringRefs(type).map(whyOut)
      return out.some((why) => why !== undefined) ? this.#reduced(type, out) : type
    })
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
