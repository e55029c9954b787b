/** Whether a claim accepts a pod, and the class that it then has (scheduling.md 6.6). */
import { comparePrices, lowestPrice, type PricePerHour, undeclaredFeatures } from '@tenon/api'
import type { SchedulingPolicy } from '../../input/input.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import { portsClash } from '../../input/host-ports.ts'
import type { PodShape, NodeDemand } from '../pods/pod-shape.ts'
import { type ClaimClass, type ClaimClasses, holdsAlone, holdsMore, rowsHolding } from './claim-class.ts'
import type { Answer, OpenClaim } from './open-claims.ts'
import type { Template, TypeRow } from './pool-template.ts'
import { type Amounts, amountsFit } from '../pods/resource-space.ts'
import type { ReservationAnswer, Reservations } from './reservations.ts'
import { untolerated } from '../pods/taints.ts'
import { compareRanks, type Narrowing } from '../topology/domain-choices.ts'
import type { PodTopology } from '../topology/pod-topology.ts'

/** The class and reservations of a claim after it accepts a pod. */
export interface Admission {
  readonly class: ClaimClass
  readonly minValuesRelaxed: boolean
  readonly reservations: ReadonlySet<string>
}

/** A class restricted to certain topology domains. */
interface ConfinedClass {
  readonly confined: ClaimClass
  readonly narrowing: Narrowing
}

const nothing: ReadonlySet<string> = new Set()

export class ClaimAdmission {
  readonly #classes: ClaimClasses
  readonly #topology: PodTopology
  readonly #policy: SchedulingPolicy
  readonly #reservations: Reservations | undefined
  readonly #suited: (boolean | undefined)[][] = []
  readonly #targets: (readonly ClaimClass[] | undefined)[][] = []
  /** By class. */
  readonly #priceLists: (readonly PricePerHour[])[] = []
  /** By class. */
  readonly #rowPrices: (readonly PricePerHour[])[] = []
  readonly #knownPriceLists = new Map<string, readonly PricePerHour[]>()
  readonly #prices = new AnswersByClass<PricePerHour>()
  readonly #rooms = new AnswersByClass<number>()
  readonly #compiled: CompiledProblem
  /** By class. */
  readonly #companions: (number | undefined)[] = []
  /** By shape and class. */
  readonly #poolCounts: (number | undefined)[][] = []

  constructor(compiled: CompiledProblem, topology: PodTopology, reservations: Reservations | undefined) {
    this.#compiled = compiled
    this.#classes = compiled.classes
    this.#topology = topology
    this.#policy = compiled.problem.policy
    this.#reservations = reservations
  }

  /** The classes of a claim of this class once a pod of this shape is added, one per suitable choice of volumes. */
  targets(shape: PodShape, from: ClaimClass): readonly ClaimClass[] {
    const known = (this.#targets[shape.index] ??= [])
    let targets = known[from.index]
    if (targets === undefined) {
      const mayTake = shape.origin !== 'check' && this.#suitsPool(shape, from.template)
      targets = mayTake ? this.#findTargets(shape, shape.wanted, from) : []
      known[from.index] = targets
    }
    return targets
  }

  /** Whether the pod tolerates the taints of the pool's nodes, and these declare the features that it needs. */
  #suitsPool(shape: PodShape, template: Template): boolean {
    const known = (this.#suited[shape.index] ??= [])
    return (known[template.index] ??=
      untolerated(template.taints, shape.tolerations).length === 0 &&
      undeclaredFeatures(shape.features, template.declaredFeatures).length === 0)
  }

  /**
   * The targets confined to the topology domains that are allowed now, without those that cannot be launched. If a
   * domain must be chosen, the best comes first: the lowest rank, then the cheapest, then the domains in the fewest other
   * choices, then room for the most such pods, then allowed for the most pods, then offered by the fewest other NodePools
   * if this one has limits, then by name (reports.md 12).
   */
  confined(shape: PodShape, targets: readonly ClaimClass[]): readonly ClaimClass[] {
    if (!this.#topology.concernsDomains(shape)) return targets
    return targets.flatMap((target) => {
      const choices = this.#topology.choices(shape, target.state, target.template.index)
      if ('kind' in choices) return []
      const ways = choices.flatMap(({ narrowing, ranks }) => {
        const confined = this.#classes.confined(target, narrowing)
        if (confined === undefined || confined.rows.length === 0) return []
        return [{ confined, ranks, narrowing }]
      })
      if (ways.length > 1) {
        let sharing: ((narrowing: Narrowing) => number) | undefined
        const shared = (narrowing: Narrowing) => {
          sharing ??= sharedDomains(ways, ({ confined }) => this.#roomFor(shape, confined) > 0)
          return sharing(narrowing)
        }
        ways.sort(
          (a, b) =>
            compareRanks(a.ranks, b.ranks) ||
            comparePrices(this.#priceFor(shape, a.confined), this.#priceFor(shape, b.confined)) ||
            comparePriceLists(this.#pricesOf(a.confined), this.#pricesOf(b.confined)) ||
            shared(a.narrowing) - shared(b.narrowing) ||
            this.#roomFor(shape, b.confined) - this.#roomFor(shape, a.confined) ||
            this.#companionsOf(b.confined) - this.#companionsOf(a.confined) ||
            this.#poolsBeside(shape, a) - this.#poolsBeside(shape, b),
        )
      }
      return ways.map((way) => way.confined)
    })
  }

  /** The prices of the rows of a class, cheapest first, as later pods may need any of them. Equal lists are one object. */
  #pricesOf(of: ClaimClass): readonly PricePerHour[] {
    let prices = this.#priceLists[of.index]
    if (prices === undefined) {
      const sorted = this.#rowPricesOf(of).toSorted(comparePrices)
      const text = sorted.join()
      prices = this.#knownPriceLists.get(text) ?? sorted
      this.#knownPriceLists.set(text, prices)
      this.#priceLists[of.index] = prices
    }
    return prices
  }

  /** The prices of the rows of a class, in their order. */
  #rowPricesOf(of: ClaimClass): readonly PricePerHour[] {
    return (this.#rowPrices[of.index] ??= of.rows.map((row) => this.#classes.bestOffer(of, row).pricePerHour))
  }

  /** The price of the cheapest row with room for the pod alone; undefined when none has a known price. */
  #priceFor({ amounts }: PodShape, of: ClaimClass): PricePerHour {
    return this.#prices.of(amounts, of, () => {
      const prices = this.#rowPricesOf(of)
      return lowestPrice(prices.filter((_, index) => amountsFit(amounts, (of.rows[index] as TypeRow).room)))
    })
  }

  /**
   * How many pods of the shape fit on the largest row of a class. It matters for pods with affinity to each
   * other, which all follow the first.
   */
  #roomFor({ amounts }: PodShape, of: ClaimClass): number {
    return this.#rooms.of(amounts, of, () => {
      const prices = this.#rowPricesOf(of)
      let mostPriced: number | undefined
      let most = 0
      for (const [index, { room }] of of.rows.entries()) {
        if (!amountsFit(amounts, room)) continue
        const times = timesIn(amounts, room)
        most = Math.max(most, times)
        if (prices[index] !== undefined) mostPriced = Math.max(mostPriced ?? 0, times)
      }
      return mostPriced ?? most
    })
  }

  /** How many pods of the problem a claim of the class could hold, ignoring topology rules. */
  #companionsOf(of: ClaimClass): number {
    return (this.#companions[of.index] ??= this.#countCompanions(of))
  }

  #countCompanions(of: ClaimClass): number {
    let count = 0
    for (const { shape, pods } of this.#compiled.podsByShape) if (this.#couldBeFor(of, shape)) count += pods
    return count
  }

  #couldBeFor(of: ClaimClass, shape: PodShape): boolean {
    if (!this.#suitsPool(shape, of.template)) return false
    const { amounts } = shape
    return shape
      .required()
      .some((demand) => this.#findTargets(shape, demand, of).some((target) => holdsAlone(target, amounts)))
  }

  /** How many other NodePools could place the shape in these domains; 0 if this one has no limits. */
  #poolsBeside(shape: PodShape, { confined, narrowing }: ConfinedClass): number {
    const { template } = confined
    if (Object.keys(template.nodePool.spec.limits ?? {}).length === 0) return 0
    const known = (this.#poolCounts[shape.index] ??= [])
    return (known[confined.index] ??= this.#compiled.templates.filter(
      (other) => other !== template && this.#bringsTo(narrowing, shape, other),
    ).length)
  }

  #bringsTo(narrowing: Narrowing, shape: PodShape, template: Template): boolean {
    return this.targets(shape, this.#classes.opened(template, template.rows)).some((target) => {
      const confined = this.#classes.confined(target, narrowing)
      return confined !== undefined && holdsAlone(confined, shape.amounts)
    })
  }

  /**
   * @param targets see {@link targets}.
   * @param confined see {@link confined}.
   */
  answer(
    claim: OpenClaim,
    shape: PodShape,
    targets: readonly ClaimClass[],
    confined: readonly ClaimClass[],
  ): Answer {
    // A confined class has no more room than its target.
    const accepts = this.#accepts(claim, shape, confined)
    if (!accepts && !targets.some((target) => holdsMore(target, claim.amounts, shape.amounts))) return 'never'
    const given = this.answerWithRoom(claim, shape)
    return given === 'accepts' && !accepts ? 'notNow' : given
  }

  /** The answer of a claim that has room and keeps its class. */
  answerWithRoom(claim: OpenClaim, shape: PodShape): Answer {
    if (!this.#topology.allowsHost(shape, claim.host))
      return this.#topology.refusesHostsForNow(shape) ? 'notNow' : 'never'
    return shape.hostPorts.length > 0 && portsClash(shape.hostPorts, claim.hostPorts) ? 'never' : 'accepts'
  }

  /** Whether claims of the class keep it when the pod is added, so that only room and hosts matter. */
  asksOnlyRoom(of: ClaimClass, targets: readonly ClaimClass[], confined: readonly ClaimClass[]): boolean {
    const staysSo = (into: readonly ClaimClass[]) => into.length === 1 && into[0] === of
    return this.#reservations === undefined && !of.hasMinValues && staysSo(targets) && staysSo(confined)
  }

  #accepts(claim: OpenClaim, shape: PodShape, confined: readonly ClaimClass[]): boolean {
    for (const target of confined)
      if (
        holdsMore(target, claim.amounts, shape.amounts) &&
        (isPlain(target, claim) || this.#admitted(claim, shape, target) !== undefined)
      )
        return true
    return false
  }

  /** How an open claim accepts the pod. Never relaxes minValues. */
  admit(claim: OpenClaim, shape: PodShape, confined: readonly ClaimClass[]): Admission | undefined {
    for (const target of confined) {
      if (!holdsMore(target, claim.amounts, shape.amounts)) continue
      const admission = this.#admitted(claim, shape, target)
      if (admission !== undefined) return admission
    }
    return undefined
  }

  /** The admission as `target`, which has the room; undefined when minValues or reservations do not allow it. */
  #admitted(claim: OpenClaim, shape: PodShape, target: ClaimClass): Admission | undefined {
    if (isPlain(target, claim)) return { class: target, minValuesRelaxed: false, reservations: nothing }
    const amounts = claim.amounts.map((amount, i) => amount + (shape.amounts[i] as number))
    if (target.hasMinValues && this.#classes.unmetMinValues(target, amounts).size > 0) return undefined
    const held = this.#reserved(target, amounts, claim.reservations)
    return held.kind === 'holds'
      ? { class: target, minValuesRelaxed: false, reservations: held.ids }
      : undefined
  }

  /** How a new claim is opened for the pod, or why it is refused. */
  open(
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): Admission | Extract<ReservationAnswer, { kind: 'refused' }> | undefined {
    const none = new Float64Array(shape.amounts.length)
    let refusal: Extract<ReservationAnswer, { kind: 'refused' }> | undefined
    for (const target of confined) {
      if (!holdsMore(target, none, shape.amounts)) continue
      let opened = target
      let minValuesRelaxed = false
      if (target.hasMinValues) {
        const missing = this.#classes.unmetMinValues(target, shape.amounts)
        if (missing.size > 0) {
          if (this.#policy.minValues === 'Strict') continue
          opened = this.#classes.lowered(target, missing)
          minValuesRelaxed = true
        }
      }
      const held = this.#reserved(opened, shape.amounts, nothing)
      if (held.kind === 'holds') return { class: opened, minValuesRelaxed, reservations: held.ids }
      refusal ??= held
    }
    return refusal
  }

  #reserved(target: ClaimClass, amounts: Float64Array, held: ReadonlySet<string>): ReservationAnswer {
    if (this.#reservations === undefined || (!target.hasReservations && held.size === 0))
      return { kind: 'holds', ids: nothing }
    const offerings = rowsHolding(target, amounts).flatMap((row) => this.#classes.offerings(target, row))
    return this.#reservations.judge(held, offerings)
  }

  #findTargets(shape: PodShape, demand: NodeDemand, from: ClaimClass): readonly ClaimClass[] {
    const wanted = this.#classes.narrowed(from, demand)
    if (wanted === undefined) return []
    const targets: ClaimClass[] = []
    for (const volumes of shape.volumes) {
      const placed = this.#classes.narrowed(wanted, volumes)
      if (placed === undefined) continue
      const target = this.#classes.withoutPorts(placed, shape.hostPorts)
      if (target.rows.length > 0 && !targets.includes(target)) targets.push(target)
    }
    return targets
  }
}

/** Caches answers about a class and the requests of a pod. */
class AnswersByClass<T> {
  readonly #known = new Map<Amounts, Map<number, T>>()

  of(amounts: Amounts, { index }: ClaimClass, workOut: () => T): T {
    let known = this.#known.get(amounts)
    if (known === undefined) {
      known = new Map()
      this.#known.set(amounts, known)
    }
    if (!known.has(index)) known.set(index, workOut())
    return known.get(index) as T
  }
}

/** How many times `amounts` fits into `room`. */
function timesIn(amounts: Amounts, room: Amounts): number {
  let times = Number.MAX_SAFE_INTEGER
  for (let i = 0; i < amounts.length; i++) {
    const amount = amounts[i] as number
    if (amount > 0) times = Math.min(times, Math.floor((room[i] as number) / amount))
  }
  return times
}

/**
 * For each choice, the number of choices that its domains occur in. If several rules choose a domain each, a pod that
 * needs a domain of one rule may have few domains of another: other pods avoid these as long as they can.
 * @param counts whether a choice has room for such pods.
 */
function sharedDomains(
  ways: readonly ConfinedClass[],
  counts: (way: ConfinedClass) => boolean,
): (narrowing: Narrowing) => number {
  if ((ways[0]?.narrowing.length ?? 0) < 2) return () => 0
  const leading = new Map<string, Map<string, number>>()
  for (const { narrowing } of ways.filter(counts))
    for (const { key, domains } of narrowing) {
      const ofKey = leading.get(key) ?? new Map<string, number>()
      leading.set(key, ofKey)
      for (const domain of domains) ofKey.set(domain, (ofKey.get(domain) ?? 0) + 1)
    }
  const most = (key: string, domains: readonly string[]): number =>
    Math.max(...domains.map((domain) => leading.get(key)?.get(domain) ?? 0))
  return (narrowing) => narrowing.reduce((sum, { key, domains }) => sum + most(key, domains), 0)
}

/** Orders lists by their first different price, cheapest first; if there is none, the longer list first. */
function comparePriceLists(a: readonly PricePerHour[], b: readonly PricePerHour[]): number {
  if (a === b) return 0
  const common = Math.min(a.length, b.length)
  for (let index = 0; index < common; index++) {
    const difference = comparePrices(a[index], b[index])
    if (difference !== 0) return difference
  }
  return b.length - a.length
}

/** Whether neither minValues nor reservations matter. */
const isPlain = (target: ClaimClass, { reservations }: OpenClaim): boolean =>
  !target.hasMinValues && !target.hasReservations && reservations.size === 0
