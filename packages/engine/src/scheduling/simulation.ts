/** One simulation: places pods and groups on existing nodes and new claims, and packs the claims (scheduling.md 6). */
import type { PodReason } from '../reasons/reasons.ts'
import type { SchedulingPolicy } from '../input/input.ts'
import type { ClaimClass } from './claims/claim-class.ts'
import type { OpenClaim } from './claims/open-claims.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import { type OnFault, type Outcome, outcomeOf, prematurelyPlaced } from './outcome.ts'
import { Interrupted, type SchedulingControl } from './pace.ts'
import type { PlanCost } from './packing/cheaper.ts'
import type { PlannedBin } from './packing/group.ts'
import { claimOf, costOf, regrouped } from './packing/regroup.ts'
import { PodGroups } from './pod-groups/pod-groups.ts'
import { sureClaims } from './pod-groups/sure-claims.ts'
import { PodPlacing, type Scope, type Selection } from './pod-placing.ts'
import type { PodShape } from './pods/pod-shape.ts'
import { SchedulerState } from './scheduler-state.ts'
import type { Launch } from './topology/node-domains.ts'

export interface SimulationOptions {
  /** What is decided, and from which state; by default the whole problem. */
  readonly scope?: Scope
  /** Whether a pod joins pods for which it would have to wait (crowding.ts) only if no other open claim accepts it. */
  readonly avoidsCrowding?: boolean
  /** Groups, by index, that are not tried, and why they cannot be scheduled. */
  readonly barred?: ReadonlyMap<number, PodReason>
  /** Pods outside groups that are placed before the groups. */
  readonly ahead?: ReadonlySet<number>
  /** Nodes that are assumed to be launched, whatever is decided: spread constraints count their domains. */
  readonly launches?: readonly Launch[]
}

export class Simulation {
  readonly #compiled: CompiledProblem
  readonly #state: SchedulerState
  readonly #scope: Scope
  readonly #placing: PodPlacing
  readonly #groups: PodGroups

  constructor(
    compiled: CompiledProblem,
    selection: Selection,
    {
      launches,
      scope = wholeOf(compiled, launches),
      avoidsCrowding = false,
      barred = new Map(),
      ahead = new Set(),
    }: SimulationOptions = {},
  ) {
    this.#compiled = compiled
    this.#scope = scope
    this.#state = scope.state
    this.#placing = new PodPlacing(scope, { selection, avoidsCrowding })
    this.#groups = new PodGroups(scope.state, this.#placing, { barred, ahead })
  }

  /** First fit over the whole problem that ignores earlier plans. */
  static unplanned(compiled: CompiledProblem, options: Omit<SimulationOptions, 'scope'> = {}): Simulation {
    const scope = { ...wholeOf(compiled, options.launches), planned: new Map() }
    return new Simulation(compiled, 'firstFit', { ...options, scope })
  }

  /** Places the pods. Pods of buffers get what is left when all others are placed. */
  run(control: SchedulingControl): void {
    const { ordinary, ofBuffers } = this.#compiled.withoutBufferPods(this.#scope.pods)
    this.#compiled.pace.under(control, () => {
      try {
        this.#groups.place(ordinary, control)
        if (ofBuffers.length === 0) return
        if (this.isComplete) this.#placing.placeAll(ofBuffers, control)
        else this.#placing.addUndecided(ofBuffers)
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error
        this.#placing.interrupt(this.#scope.pods)
      }
    })
  }

  get claims(): readonly OpenClaim[] {
    return this.#placing.claims.all
  }

  get isComplete(): boolean {
    return this.#placing.isComplete
  }

  /** Pods that cannot be scheduled. */
  get failed(): ReadonlySet<number> {
    return new Set(this.#placing.failures.keys())
  }

  /** Index of the node by pod, of pods that go to one. */
  get nodeOf(): ReadonlyMap<number, number> {
    return this.#placing.nodeOf
  }

  /** Pods on nodes that are not initialized, without those that lose their node anyway (scheduling.md 14). */
  get prematurelyPlaced(): readonly number[] {
    return prematurelyPlaced(this.#placing, this.#compiled)
  }

  /** What the open claims cost, each as its cheapest type. */
  get cost(): PlanCost {
    return costOf(this.claims, this.#compiled.finisher)
  }

  /** Whether some pod would have to wait until other pods of its claim are bound. */
  get isCrowded(): boolean {
    const { crowding } = this.#placing
    return this.claims.some(({ pods }) => {
      const seen = new Set<PodShape>()
      return pods.some((pod, at) => {
        const shape = this.#compiled.shapeOf(pod)
        if (seen.has(shape) || !crowding.concerns(shape)) return false
        seen.add(shape)
        return crowding.isCrowded(pods.toSpliced(at, 1), shape)
      })
    })
  }

  /** Pods that would take the new nodes of groups; see {@link PodGroups.podsOutsideGroups}. */
  podsOutsideGroups(): readonly number[] {
    return this.#groups.podsOutsideGroups()
  }

  /** The class of the claim to open for this pod shape, or undefined if no NodePool can hold it. */
  classFor(shape: PodShape): ClaimClass | undefined {
    return this.#placing.classFor(shape)
  }

  /** The zones that topology rules leave to each shape that has rules about zones, by index of the shape. */
  validZones(): ReadonlyMap<number, readonly string[]> {
    const zones = new Map<number, readonly string[]>()
    for (const [index, shape] of this.#compiled.shapes.entries()) {
      const valid = shape && this.#state.topology.validZones(shape)
      if (valid !== undefined) zones.set(index, valid)
    }
    return zones
  }

  /** The nodes on their way and those of the claims, as spread constraints count them; equal ones once. */
  launches(): readonly Launch[] {
    const byState = Map.groupBy(this.claims, ({ state }) => state)
    const claimed = [...byState.values()].flatMap((claims) => [
      ...new Map(claims.map((claim) => [claim.class.template, claim])).values(),
    ])
    return [...this.#compiled.onTheirWay, ...claimed]
  }

  /** Whether kube-scheduler, once these nodes exist, counts the same domains for spread constraints as this simulation. */
  predictsDomains(launches: readonly Launch[]): boolean {
    const shapes = this.#compiled.shapes.filter((shape) => shape !== undefined)
    return this.#state.topology.predictsDomains(launches, shapes)
  }

  /** Packs claims again, unless rules about other pods bind their pods; see packing/regroup.ts. */
  regroup(improvement: NonNullable<SchedulingPolicy['improvement']>, shouldStop: () => boolean): void {
    const { budgets } = this.#placing.claims
    const { topology } = this.#state
    const context = { compiled: this.#compiled, topology, budgets, improvement, shouldStop }
    this.#placing.claims.replace(sureClaims(regrouped(this.claims, context), this.#groups.unlike(), context))
  }

  /**
   * Exchanges the claims of these pods for the bins. If the claims hold other pods too, or limits do not allow the
   * bins, the claims stay as first fit made them.
   */
  rearrange(bins: readonly PlannedBin[]): void {
    const wanted = new Set(bins.flatMap(({ pods }) => pods))
    const old = this.claims.filter(({ pods }) => pods.some((pod) => wanted.has(pod)))
    const [model] = old
    if (old.some(({ consumer }) => consumer !== undefined)) return
    if (model === undefined || old.reduce((sum, { pods }) => sum + pods.length, 0) !== wanted.size) return
    const renewed = bins.map((bin) => claimOf(bin, model, this.#compiled))
    // First fit may have used several NodePools, each with its own limits.
    const used = new Set([...old, ...renewed].map((claim) => claim.class.template))
    const budgets = [...used].map((template) => [template, this.#placing.claims.budgetOf(template)] as const)
    const undo = budgets.map(([, budget]) => budget.saved())
    const isWithin = budgets.every(([template, budget]) => {
      const held = (claims: readonly OpenClaim[]) =>
        claims
          .filter((claim) => claim.class.template === template)
          .map((claim) => this.#compiled.finisher.holding(claim))
      return !budget.isLimited || budget.exchange(held(renewed), held(old))
    })
    if (!isWithin) {
      for (const each of undo) each()
      return
    }
    this.#placing.claims.replace([...this.claims.filter((claim) => !old.includes(claim)), ...renewed])
  }

  /** @param onFault called with each error of an explanation; without it, the error is thrown. */
  outcome(onFault?: OnFault): Outcome {
    for (const error of this.#groups.faults.splice(0)) {
      if (onFault === undefined) throw error
      onFault(error)
    }
    return outcomeOf(this.#placing, this.#state, this.#scope.unreadable, this.#groups.outcomes, onFault)
  }
}

function wholeOf(compiled: CompiledProblem, launches: readonly Launch[] | undefined): Scope {
  return {
    state: new SchedulerState(compiled, undefined, launches),
    pods: compiled.order(),
    unreadable: compiled.unreadable(),
    usageOf: (pool) => compiled.problem.pools[pool]?.usage ?? {},
  }
}
