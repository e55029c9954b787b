/**
 * Searches for the cheapest set of nodes that holds all pods of a fleet if kube-scheduler places the pods that move: which
 * nodes stay, and which few are launched. First it removes nodes one by one while the rest has room. Then it exchanges
 * nodes by simulated annealing.
 */
import type { Fleet, Launchable, Instance } from './fleet.ts'
import type { ConsolidationQuestion } from './question.ts'
import { type PlaceOptions, SchedulerModel } from './scheduler-model.ts'
import type { Candidate } from './what-if.ts'

/** A state of the fleet that a move leads to. */
export interface EndState {
  readonly gone: readonly Candidate[]
  readonly launches: readonly { readonly type: Launchable; readonly pods: readonly number[] }[]
  /** Index of the existing node that a moving pod goes to, by pod. */
  readonly homes: ReadonlyMap<number, number>
  /** The moving pods, in the order in which they must move. */
  readonly waves: readonly (readonly number[])[]
}

interface EndStates {
  /** Best first; empty when no state is cheaper than the current one. */
  readonly states: readonly EndState[]
  readonly isLimitedByBudget: boolean
}

/** Nodes that stay, nodes that are removed, and types that are launched, by index. */
interface FleetPlan {
  readonly kept: readonly number[]
  /** Ascending. */
  readonly gone: readonly number[]
  readonly launched: readonly number[]
}

/** The removal of a node must save this share of its price, and a launch this share of its own price. */
const shareOfGone = 0.03
const shareOfLaunch = 0.01
/** Work limit of one search, in hosts compared for a pod: a few tenths of a second. */
const effortUnits = 20_000_000
const roundsPerNode = 300
/**
 * Nodes are only exchanged if this share of the current price could be saved, so that a good state is left
 * alone.
 */
const minPotentialSavings = 0.04
/** The most launches of one search, and the number of nodes for each further launch. */
const mostLaunches = 5
const nodesPerLaunch = 20
/** How many plans with a price close to the best one are compared for stability. */
const mostRivals = 12
const rivalShare = 0.004
const trials = 8
/** Noise that is added to kube-scheduler's score of 400 points, to test how stable a plan is. */
const scoreNoise = 20
/**
 * The cost of pods that do not fit, as a multiple of their worth: a node launched for them alone is
 * expensive.
 */
const missingFactor = 3
const tiny = 1e-9

/**
 * @param question settled candidates shorten the search, as an earlier search found nothing for them.
 */
export function cheapestStates(
  fleet: Fleet,
  question: Pick<ConsolidationQuestion, 'budgets' | 'settled'>,
  shouldStop: () => boolean,
): EndStates {
  return new Search(fleet, question, shouldStop).run()
}

/** Budgets and types that decide whether a plan is allowed, by index. */
interface Rules {
  /** How many nodes may still be disrupted, by NodePool. */
  readonly left: readonly number[]
  /** NodePool of each instance that may be removed; -1 for others. */
  readonly poolOf: Int32Array
  /** Instance type of each instance, as the index of the first launchable with that type; -1 for others. */
  readonly typeOf: Int32Array
  /** The same for each launchable. */
  readonly firstOf: Int32Array
}

function rulesOf({ instances, types }: Fleet, budgets: ReadonlyMap<string, number>): Rules {
  const pools = [...new Set(instances.flatMap(({ candidate }) => candidate?.input.nodePool ?? []))]
  const indexes = new Map(pools.map((pool, index) => [pool, index]))
  const names = new Map(
    [...types.entries()].toReversed().map(([index, { row }]) => [row.type.type.name, index]),
  )
  return {
    left: pools.map((pool) => budgets.get(pool) ?? 0),
    poolOf: Int32Array.from(instances, ({ candidate }) =>
      candidate === undefined ? -1 : (indexes.get(candidate.input.nodePool) ?? -1),
    ),
    typeOf: Int32Array.from(instances, ({ candidate }) =>
      candidate === undefined ? -1 : (names.get(candidate.input.instanceType) ?? -1),
    ),
    firstOf: Int32Array.from(types, ({ row }) => names.get(row.type.type.name) ?? -1),
  }
}

/** The numbers and `one`, ascending. */
function withOne(numbers: readonly number[], one: number): readonly number[] {
  const place = numbers.findIndex((each) => each > one)
  return place < 0 ? [...numbers, one] : numbers.toSpliced(place, 0, one)
}

/** The number of exchanges in one search; 0 when all candidates are settled. */
function roundsFor({ instances }: Fleet, settled: ReadonlySet<string> | undefined): number {
  if (settled === undefined || settled.size === 0) return roundsPerNode * (instances.length + mostLaunches)
  const isUnsettled = ({ candidate }: Instance) =>
    candidate !== undefined && !settled.has(candidate.input.node)
  const unsettled = instances.filter(isUnsettled).length
  return unsettled === 0 ? 0 : roundsPerNode * (unsettled + mostLaunches)
}

class Search {
  readonly #fleet: Fleet
  readonly #shouldStop: () => boolean
  readonly #model: SchedulerModel
  /** Pending pods and those of all instances, by kind. */
  readonly #total: Int32Array
  /** Pending pods, by kind. */
  readonly #waiting: Int32Array
  readonly #all: readonly number[]
  readonly #mostLaunches: number
  readonly #rounds: number
  readonly #rules: Rules
  /** Kinds of the pods that move, by instance. */
  readonly #kindsOn: readonly (readonly number[])[]
  /** Of each instance, per hour. */
  readonly #prices: Float64Array
  /** Of all instances, per hour. */
  readonly #price: number
  /** The worth of pods that do not fit in the current state. */
  readonly #lost: number
  #isLimitedByBudget = false
  #seed = 1

  constructor(
    fleet: Fleet,
    { budgets, settled }: Pick<ConsolidationQuestion, 'budgets' | 'settled'>,
    shouldStop: () => boolean,
  ) {
    this.#fleet = fleet
    this.#shouldStop = shouldStop
    this.#model = new SchedulerModel(fleet.kinds, fleet.layout, [...fleet.instances, ...fleet.types])
    this.#waiting = new Int32Array(fleet.waiting.map(({ length }) => length))
    this.#total = this.#waiting.slice()
    for (const { moving } of fleet.instances) add(this.#total, moving)
    this.#all = [...fleet.instances.keys()]
    this.#prices = Float64Array.from(fleet.instances, ({ pricePerHour }) => pricePerHour)
    this.#price = this.#keptPrice(this.#all)
    this.#rules = rulesOf(fleet, budgets)
    this.#kindsOn = fleet.instances.map(({ moving }) =>
      [...moving.keys()].filter((kind) => (moving[kind] as number) > 0),
    )
    this.#mostLaunches = Math.max(mostLaunches, Math.ceil(fleet.instances.length / nodesPerLaunch))
    this.#rounds = roundsFor(fleet, settled)
    this.#lost = this.#missing(this.#asIs)
  }

  run(): EndStates {
    const fewest = this.#fewest()
    const now = this.#asIs
    const best = this.#rounds > 0 && this.#isPromising(now) ? this.#exchanged(fewest) : fewest
    const plans = [best, fewest].filter(
      (plan, place, all) =>
        plan.kept.length < this.#all.length &&
        all.indexOf(plan) === place &&
        this.#cost(plan) < this.#cost(now) - tiny,
    )
    return {
      states: plans.map((plan) => this.#stateOf(plan)),
      isLimitedByBudget: this.#isLimitedByBudget,
    }
  }

  get #asIs(): FleetPlan {
    return { kept: this.#all, gone: [], launched: [] }
  }

  /** Removes nodes while the others have room, the most wasteful first. */
  #fewest(): FleetPlan {
    const { instances } = this.#fleet
    let plan = this.#asIs
    const order = this.#all
      .filter((index) => instances[index]?.candidate !== undefined)
      .map((index) => ({ index, loss: this.#lossOf(instances[index] as Instance) }))
      .toSorted((a, b) => b.loss - a.loss || a.index - b.index)
    const withRoom = new InstancesWithRoom(this.#fleet)
    for (const { index } of order) {
      if (this.#shouldStop()) break
      if (!withRoom.mayGo(index)) continue
      const kept = plan.kept.filter((each) => each !== index)
      const next = { ...plan, kept, gone: withOne(plan.gone, index) }
      if (!this.#isAllowed(next) || !this.#isFeasible(next)) continue
      plan = next
      withRoom.goes(index)
    }
    return plan
  }

  #isPromising(plan: FleetPlan): boolean {
    const least = this.#fleet.kinds.reduce(
      (sum, { worth }, kind) => sum + worth * (this.#total[kind] as number),
      0,
    )
    const price = this.#priceOf(plan)
    return price - least > minPotentialSavings * price
  }

  #exchanged(start: FleetPlan): FleetPlan {
    const price = this.#priceOf(start)
    let current = start
    let cost = this.#cost(current)
    let best = { plan: current, cost }
    const rivals: { readonly plan: FleetPlan; readonly cost: number }[] = [best]
    const begun = this.#model.spent
    const rounds = this.#rounds
    for (let round = 0; round < rounds && !this.#shouldStop(); round++) {
      const done = Math.max(round / rounds, (this.#model.spent - begun) / effortUnits)
      if (done >= 1) break
      const heat = price * (0.007 * (1 - done) + 0.0002)
      const next = this.#varied(current)
      if (next === undefined || !this.#isAllowed(next)) continue
      // A worse plan is accepted with a probability that falls with the difference. Drawing it before the costs
      // are computed lets bad plans end early.
      const most = cost - heat * Math.log(this.#random())
      const least = this.#costOf(next)
      const mostMissing = (most - least) / missingFactor
      if (mostMissing <= 0) continue
      const missing = this.#missing(next, { mostMissing })
      if (missing >= mostMissing) continue
      const nextCost = least + missingFactor * missing
      current = next
      cost = nextCost
      if (missing > this.#lost + tiny) continue
      if (nextCost < best.cost * (1 + rivalShare)) rivals.push({ plan: next, cost: nextCost })
      if (nextCost < best.cost - tiny) best = { plan: next, cost: nextCost }
    }
    return this.#steadiest(rivals, best.cost)
  }

  /** Of plans with about the same price, the one that depends least on what kube-scheduler chooses. */
  #steadiest(
    rivals: readonly { readonly plan: FleetPlan; readonly cost: number }[],
    least: number,
  ): FleetPlan {
    const close = rivals
      .filter(({ cost }) => cost <= least * (1 + rivalShare))
      .toSorted((a, b) => a.cost - b.cost)
      .slice(0, mostRivals)
    const judged = close.map(({ plan, cost }) => {
      let expected = 0
      for (let trial = 0; trial < trials; trial++)
        expected += this.#missing(plan, { noise: () => scoreNoise * this.#random() }) / trials
      return { plan, cost: cost + missingFactor * expected }
    })
    return judged.reduce((a, b) => (b.cost < a.cost - tiny ? b : a)).plan
  }

  /** The plan with one or two changes; undefined when the drawn change is impossible. */
  #varied(plan: FleetPlan): FleetPlan | undefined {
    const draw = this.#random()
    if (draw < 0.15) return this.#without(plan)
    if (draw < 0.4) return this.#back(this.#without(plan))
    if (draw < 0.55) return this.#launching(this.#without(plan))
    if (draw < 0.7) return this.#launching(this.#without(this.#without(plan)))
    if (draw < 0.8) return this.#launching(this.#launching(this.#without(plan)))
    if (draw < 0.9) return this.#back(this.#without(this.#without(plan)))
    if (draw < 0.92) return this.#launching(plan)
    if (draw < 0.94) return this.#back(plan)
    const place = this.#below(plan.launched.length)
    if (place < 0) return undefined
    return this.#launching({ ...plan, launched: plan.launched.toSpliced(place, 1) })
  }

  #without(plan: FleetPlan | undefined): FleetPlan | undefined {
    if (plan === undefined) return undefined
    const place = this.#below(plan.kept.length + plan.launched.length)
    if (place < 0) return undefined
    if (place >= plan.kept.length)
      return { ...plan, launched: plan.launched.toSpliced(place - plan.kept.length, 1) }
    const index = plan.kept[place] as number
    if (this.#fleet.instances[index]?.candidate === undefined) return undefined
    return { ...plan, kept: plan.kept.toSpliced(place, 1), gone: withOne(plan.gone, index) }
  }

  #back(plan: FleetPlan | undefined): FleetPlan | undefined {
    if (plan === undefined) return undefined
    const place = this.#below(plan.gone.length)
    const index = plan.gone[place]
    if (index === undefined) return undefined
    return { ...plan, kept: [...plan.kept, index], gone: plan.gone.toSpliced(place, 1) }
  }

  #launching(plan: FleetPlan | undefined): FleetPlan | undefined {
    if (plan === undefined || plan.launched.length >= this.#mostLaunches) return undefined
    const type = this.#below(this.#fleet.types.length)
    return type < 0 ? undefined : { ...plan, launched: [...plan.launched, type] }
  }

  /** Checks budgets, and that no launched type is the same as that of a removed node (disruption.md 9). */
  #isAllowed({ gone, launched }: FleetPlan): boolean {
    const { left, poolOf, typeOf, firstOf } = this.#rules
    const counts = new Int32Array(left.length)
    for (const index of gone) {
      const pool = poolOf[index] as number
      const count = (counts[pool] as number) + 1
      counts[pool] = count
      if (count <= (left[pool] as number)) continue
      this.#isLimitedByBudget = true
      return false
    }
    return launched.every((type) => gone.every((index) => typeOf[index] !== firstOf[type]))
  }

  #isFeasible(plan: FleetPlan): boolean {
    const mostMissing = this.#lost + tiny
    return this.#missing(plan, { mostMissing }) <= mostMissing
  }

  #missing(plan: FleetPlan, options?: PlaceOptions): number {
    return this.#model.place(this.#hostsOf(plan), this.#movingOf(plan), options)
  }

  /** Indexes of the hosts; launchables come after the instances. */
  #hostsOf({ kept, launched }: FleetPlan): readonly number[] {
    if (launched.length === 0) return kept
    const { length } = this.#all
    return [...kept, ...launched.map((type) => length + type)]
  }

  /** Pods to place by kind: pending pods, and those of removed instances. */
  #movingOf({ gone }: FleetPlan): Int32Array {
    const moving = this.#waiting.slice()
    for (const index of gone) {
      const own = (this.#fleet.instances[index] as Instance).moving
      for (const kind of this.#kindsOn[index] as readonly number[])
        moving[kind] = (moving[kind] as number) + (own[kind] as number)
    }
    return moving
  }

  #priceOf({ kept, launched }: FleetPlan): number {
    return this.#keptPrice(kept) + this.#launchPrice(launched)
  }

  #keptPrice(kept: FleetPlan['kept']): number {
    let price = 0
    for (const index of kept) price += this.#prices[index] as number
    return price
  }

  #launchPrice(launched: FleetPlan['launched']): number {
    let price = 0
    for (const type of launched) price += (this.#fleet.types[type] as Launchable).pricePerHour
    return price
  }

  /** The price, plus the least savings that each change must bring. */
  #costOf({ kept, launched }: FleetPlan): number {
    const staying = this.#keptPrice(kept)
    const added = this.#launchPrice(launched)
    return staying + added + shareOfGone * (this.#price - staying) + shareOfLaunch * added
  }

  #cost(plan: FleetPlan): number {
    return this.#costOf(plan) + missingFactor * this.#missing(plan)
  }

  /** The price of an instance minus the worth of its pods. */
  #lossOf({ pricePerHour, moving }: Instance): number {
    return this.#fleet.kinds.reduce(
      (loss, { worth }, kind) => loss - worth * (moving[kind] as number),
      pricePerHour,
    )
  }

  #stateOf(plan: FleetPlan): EndState {
    const { kinds, instances, waiting } = this.#fleet
    const hosts = this.#hostsOf(plan)
    const places = kinds.map((): number[] => [])
    this.#model.place(hosts, this.#movingOf(plan), { homes: places })
    const stays = new Set(plan.kept)
    const homes = new Map<number, number>()
    const launches = plan.launched.map((type) => ({
      type: this.#fleet.types[type] as Launchable,
      pods: [] as number[],
    }))
    const waves: number[][] = []
    for (const [kind, { wave }] of kinds.entries()) {
      const leaving = instances.flatMap(({ pods }, index) => (stays.has(index) ? [] : (pods[kind] ?? [])))
      ;(waves[wave] ??= []).push(...leaving)
      for (const [order, pod] of [...(waiting[kind] ?? []), ...leaving].entries()) {
        const place = places[kind]?.[order]
        if (place === undefined) continue
        if (place >= plan.kept.length) launches[place - plan.kept.length]?.pods.push(pod)
        else homes.set(pod, instances[plan.kept[place] as number]?.index ?? -1)
      }
    }
    return {
      gone: plan.gone.flatMap((index) => instances[index]?.candidate ?? []),
      launches: launches.filter(({ pods }) => pods.length > 0),
      homes,
      waves: waves.filter((pods) => pods.length > 0),
    }
  }

  /** A random index below `count`; -1 when `count` is 0. */
  #below(count: number): number {
    return count === 0 ? -1 : Math.floor(this.#random() * count)
  }

  /**
   * A pseudo-random number from 0 to 1. Each search gets the same sequence, so that equal questions have
   * equal answers.
   */
  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0
    return this.#seed / 4_294_967_296
  }
}

/** For each kind of pod, the instances with room for one more. */
class InstancesWithRoom {
  readonly #fleet: Fleet
  /** By kind and instance: 1 if the instance has room. */
  readonly #takes: readonly Uint8Array[]
  readonly #counts: Int32Array

  constructor(fleet: Fleet) {
    this.#fleet = fleet
    this.#counts = new Int32Array(fleet.kinds.length)
    this.#takes = fleet.kinds.map(() => new Uint8Array(fleet.instances.length))
    for (const [kind, takes] of this.#takes.entries())
      for (const [instance, { scores }] of fleet.instances.entries()) {
        if (scores[kind] === Number.NEGATIVE_INFINITY) continue
        takes[instance] = 1
        this.#counts[kind] = this.#countOf(kind) + 1
      }
  }

  /** Whether each pod of the instance fits, taken alone, on some other instance that stays. */
  mayGo(instance: number): boolean {
    const moving = this.#fleet.instances[instance]?.moving ?? []
    for (let kind = 0; kind < moving.length; kind++)
      if (moving[kind] !== 0 && this.#countOf(kind) <= (this.#takes[kind]?.[instance] ?? 0)) return false
    return true
  }

  goes(instance: number): void {
    for (let kind = 0; kind < this.#counts.length; kind++)
      this.#counts[kind] = this.#countOf(kind) - (this.#takes[kind]?.[instance] ?? 0)
  }

  #countOf(kind: number): number {
    return this.#counts[kind] as number
  }
}

function add(amounts: Int32Array, more: Int32Array): void {
  for (let i = 0; i < amounts.length; i++) amounts[i] = (amounts[i] as number) + (more[i] as number)
}
