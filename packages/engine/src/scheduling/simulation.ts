/** One pass over all pods: where each goes, and which claims are opened for it (scheduling.md 6). */
import { comparePrices, type PricePerHour, type Resources } from '@tenon/api'
import type { PodReason } from '../reasons/reasons.ts'
import type { SchedulingPolicy } from '../input/input.ts'
import { type Admission, ClaimAdmission } from './claims/claim-admission.ts'
import { type ClaimClass, holdsMore } from './claims/claim-class.ts'
import { compareText } from '../input/compare-text.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import { PodDevices } from './devices/pod-devices.ts'
import { Crowding } from './pods/crowding.ts'
import { explain } from './explain.ts'
import type { FinishedClaim } from './claims/finished-claims.ts'
import { Ground } from './ground.ts'
import type { PlanCost } from './packing/cheaper.ts'
import type { PlannedBin } from './packing/group.ts'
import { Interrupted, type SchedulingControl } from './pace.ts'
import { claimOf, costOf, regrouped, type RegroupContext } from './packing/regroup.ts'
import type { NodeFill } from './nodes/node-fill.ts'
import type { NodeQueue } from './nodes/node-queue.ts'
import { type Answer, ClaimQueue, isBefore, type OpenClaim } from './claims/open-claims.ts'
import type { GroupOutcome } from './pod-groups/group-placing.ts'
import { GroupUnits, type PodPlacing } from './pod-groups/group-units.ts'
import { type PlacedGroup, sureClaims } from './pod-groups/sure-claims.ts'
import { TrialLog } from './pod-groups/trial-log.ts'
import type { PodShape } from './pods/pod-shape.ts'
import { PoolBudget, type Template } from './claims/pool-template.ts'
import { addTo, amountsFit } from './pods/resource-space.ts'
import { remembered } from './remembered.ts'
import { Reservations } from './claims/reservations.ts'
import type { Launch, PodTopology } from './topology/pod-topology.ts'

/** Pods placed between two questions whether to stop. */
const podsPerCheck = 64
/** Claims compared for a pod when the thriftiest is looked for, and comparisons in one pass. */
const mostChoices = 128
const comparisons = 2_000_000

/** What a pass came to, by indexes of the problem. */
export interface Outcome {
  readonly claims: readonly FinishedClaim[]
  /** Pods that go to a node, each followed by the index of its node; in order of their UIDs. */
  readonly placements: Int32Array
  /** Per pod that finds no place: its reason; in order of their UIDs. */
  readonly failures: ReadonlyMap<number, PodReason>
  readonly undecided: readonly number[]
  /** By index of the group; groups that were not decided are not here. */
  readonly podGroups: ReadonlyMap<number, GroupOutcome>
}

/** How an open claim's class bears on a shape. */
interface Reach {
  readonly from: ClaimClass
  readonly queue: ClaimQueue
  readonly targets: readonly ClaimClass[]
}

/** How a pod may enter an open claim. */
interface Entry {
  /** When claims are omitted on which the pod would have to wait for others. */
  readonly crowding?: Crowding
  /** The NodePool whose claims of unknown price may lose types for the pod: it sells nothing else for it. */
  readonly growing?: Template
}

interface ShapeMemory {
  readonly reach: Reach[]
  /** Classes looked at so far. */
  seen: number
  /** Placements made when the shape last found no place; it finds none before there are more. */
  failedAt: number
  /** Set when devices are what it found no place for. */
  devices: PodReason | undefined
}

/** What one simulation decides, and on what ground. */
export interface Scope {
  readonly ground: Ground
  /** Pods to place, in the order in which they are tried. */
  readonly pods: readonly number[]
  /** What is wrong with pods that cannot be read, by pod. */
  readonly unreadable: ReadonlyMap<number, string>
  /** What the pool with this index in the problem has in use. */
  readonly usageOf: (pool: number) => Resources
  /** Index of the node for each pod that is to go to a certain one if it can; as the problem says unless given. */
  readonly planned?: ReadonlyMap<number, number>
}

function wholeOf(compiled: CompiledProblem, launches: readonly Launch[] | undefined): Scope {
  return {
    ground: new Ground(compiled, undefined, launches),
    pods: compiled.order(),
    unreadable: compiled.unreadable(),
    usageOf: (pool) => compiled.problem.pools[pool]?.usage ?? {},
  }
}

export interface SimulationOptions {
  /** What is decided, and on what ground; the whole problem unless given. */
  readonly scope?: Scope
  /** Whether a pod goes where it would have to wait for others (crowding.ts) only if no open claim else takes it. */
  readonly keepsApart?: boolean
  /** Groups, by index, that find no place whatever there is, and why. */
  readonly barred?: ReadonlyMap<number, PodReason>
  /** Pods of no group that are placed before groups. */
  readonly ahead?: ReadonlySet<number>
  /** Nodes that are taken to be launched, whatever is decided: spreads count their domains. */
  readonly launches?: readonly Launch[]
}

/** How a claim is chosen among those that accept a pod. */
export type Selection = 'firstFit' | 'thrifty'

/** One pass over all pods. */
export class Simulation {
  readonly #compiled: CompiledProblem
  readonly #selection: Selection
  readonly #nodes: NodeQueue
  readonly #topology: PodTopology
  readonly #admission: ClaimAdmission
  readonly #budgets: ReadonlyMap<Template, PoolBudget>
  readonly #reservations: Reservations | undefined
  #claims: OpenClaim[] = []
  readonly #claimOfHost = new Map<number, OpenClaim>()
  /** Classes that have, or had, open claims. */
  readonly #openClasses: ClaimClass[] = []
  readonly #queues = new Map<ClaimClass, ClaimQueue>()
  readonly #memory: (ShapeMemory | undefined)[] = []
  readonly #failures = new Map<number, PodReason | PodShape>()
  /** Claims for one pod alone that a pod with a place uses. */
  readonly #takenClaims = new Set<string>()
  readonly #scope: Scope
  readonly #ground: Ground
  /** Index of the node by pod. */
  readonly #nodeOf = new Map<number, number>()
  readonly #choices: number
  readonly #crowding: Crowding
  readonly #devices: PodDevices
  readonly #keepsApart: boolean
  readonly #log: TrialLog
  readonly #groups: GroupUnits
  /** What reasons of groups could not be computed for. */
  readonly #faults: unknown[] = []
  #undecided: readonly number[] = []
  /** Grows with each placement, and whenever one is taken back. */
  #placements = 0
  /** Pods that have a place. */
  #placed = 0
  #newHost: number

  constructor(
    compiled: CompiledProblem,
    selection: Selection,
    {
      launches,
      scope = wholeOf(compiled, launches),
      keepsApart = false,
      barred = new Map(),
      ahead = new Set(),
    }: SimulationOptions = {},
  ) {
    this.#compiled = compiled
    this.#selection = selection
    this.#scope = scope
    this.#ground = scope.ground
    this.#topology = scope.ground.topology
    this.#nodes = scope.ground.nodes
    const { problem, templates } = compiled
    const { policy } = problem
    this.#budgets = new Map(
      templates.map((template) => {
        const usage = scope.usageOf(compiled.poolIndexOf(template))
        return [template, new PoolBudget(template.nodePool, usage, template.rows)]
      }),
    )
    this.#reservations =
      policy.reservations === undefined ? undefined : new Reservations(policy.reservations, templates)
    this.#admission =
      this.#reservations === undefined
        ? scope.ground.admission
        : new ClaimAdmission(compiled, this.#topology, this.#reservations)
    this.#crowding = new Crowding((pod) => compiled.shapeOf(pod))
    this.#keepsApart = keepsApart
    this.#devices = new PodDevices(scope.ground.devices, compiled, {
      admission: this.#admission,
      topology: this.#topology,
    })
    this.#log = this.#logOfTrials()
    this.#groups = this.#groupUnits(barred, ahead)
    this.#newHost = this.#topology.hostOf(placeholder(0))
    this.#choices = Math.max(8, Math.min(mostChoices, Math.floor(comparisons / scope.pods.length)))
  }

  #logOfTrials(): TrialLog {
    return new TrialLog({
      ground: this.#ground,
      priceOf: (claim) => this.#compiled.finisher.priceOf(claim),
      queues: this.#queues,
      areShared: this.#devices.areServed,
      exchange: (now, before) => {
        this.#reservations?.exchange(now, before)
      },
      // What found no place during the trial may find one now.
      undone: () => {
        this.#placements++
      },
    })
  }

  #groupUnits(barred: ReadonlyMap<number, PodReason>, ahead: ReadonlySet<number>): GroupUnits {
    const pods: PodPlacing = {
      place: (pod, shape) => this.#place(pod, shape),
      placeAsPlanned: (pod, shape) => this.#placeAsPlanned(pod, shape),
      onOne: (pod, on) => this.#onOne(pod, on),
      placeAll: (list, control) => this.#placeAll(list, control),
      withoutPlanned: (list) => this.#withoutPlanned(list),
      leaveUndecided: (list) => {
        this.#leaveUndecided(list)
      },
      reasonNow: (pod) => this.#reasonNow(pod),
      isPlanned: (pod) => this.#planned.has(pod),
      isIndifferent: (pod) => this.#topology.isIndifferent(this.#compiled.shapeOf(pod)),
      isComplete: () => this.isComplete,
      placed: () => this.#placed,
    }
    return new GroupUnits({
      compiled: this.#compiled,
      log: this.#log,
      failures: this.#failures,
      barred,
      ahead,
      pods,
    })
  }

  /** First fit over the whole problem without regard to earlier plans. */
  static unplanned(compiled: CompiledProblem, options: Omit<SimulationOptions, 'scope'> = {}): Simulation {
    return new Simulation(compiled, 'firstFit', {
      ...options,
      scope: { ...wholeOf(compiled, options.launches), planned: new Map() },
    })
  }

  /**
   * Tries every pod; those that fail are tried again for as long as others still find places. Groups come before
   * pods without a plan. Pods of buffers have what is left when all others have their places.
   */
  run(control: SchedulingControl): void {
    const { ordinary, ofBuffers } = this.#compiled.apart(this.#scope.pods)
    this.#compiled.pace.under(control, () => {
      try {
        this.#placeUnits(ordinary, control)
        if (ofBuffers.length === 0) return
        if (this.isComplete) this.#placeAll(ofBuffers, control)
        else this.#undecided = [...this.#undecided, ...ofBuffers]
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error
        this.#endAmid(this.#scope.pods)
      }
    })
  }

  /** Ends where a place was looked for: nothing of the search is kept, nor of a group that was tried. */
  #endAmid(pods: readonly number[]): void {
    this.#log.undo()
    this.#log.keep()
    const placed = new Set([...this.#nodeOf.keys(), ...this.#claims.flatMap((claim) => claim.pods)])
    this.#leaveUndecided(pods.filter((pod) => !placed.has(pod)))
  }

  /** Places groups, and the other pods. */
  #placeUnits(pods: readonly number[], control: SchedulingControl): void {
    const inScope = new Set(pods)
    const groups = this.#compiled.problem.podGroups.filter(({ members }) =>
      members.some((pod) => inScope.has(pod)),
    )
    if (groups.length === 0) {
      this.#placeAll(pods, control)
      return
    }
    this.#ground.observeRelaxations()
    this.#groups.place(groups, pods, control)
  }

  #leaveUndecided(pods: readonly number[]): void {
    this.#undecided = pods.filter((each) => !this.#failures.has(each))
  }

  /** Puts a pod on one certain claim, or on a new one of a template. */
  #onOne(pod: number, on: OpenClaim | Template): OpenClaim | undefined {
    const shapes: PodShape[] = []
    for (
      let shape: PodShape | undefined = this.#compiled.shapeOf(pod);
      shape !== undefined;
      shape = shape.relaxed()
    )
      shapes.push(shape)
    this.#compiled.pace.about(pod)
    if (this.#takenClaimOf(pod) !== undefined || shapes[0]?.usesResourceClaims === true) return undefined
    this.#devices.restart()
    const isPlaced = shapes.some((shape) =>
      'host' in on
        ? this.#onBoundHost(pod, shape, [on.host])
        : this.#onNewClaim(pod, shape, [on]) === 'placed',
    )
    if (!isPlaced) return undefined
    this.#hasPlace(pod)
    return 'host' in on ? on : this.#claims.at(-1)
  }

  /** Why a pod that was just tried finds no place as things are. */
  #reasonNow(pod: number): PodReason {
    const failure = this.#failures.get(pod)
    if (failure === undefined) return { kind: 'unexplained' }
    return 'kind' in failure ? failure : this.#reasonOf(failure, (error) => this.#faults.push(error))
  }

  /** @returns the pods that find no place. */
  #placeAll(pods: readonly number[], control: SchedulingControl): readonly number[] {
    let queue = this.#withoutPlanned(pods)
    while (queue.length > 0) {
      const failed: number[] = []
      for (const [done, pod] of queue.entries()) {
        if (done % podsPerCheck === podsPerCheck - 1 && control.shouldStop()) {
          this.#leaveUndecided(queue.slice(done))
          return queue.slice(done)
        }
        if (!this.#place(pod, this.#groups.shapeOf(pod))) failed.push(pod)
      }
      if (failed.length === queue.length) return failed
      queue = failed
    }
    return []
  }

  /** Zones that the rules leave to the pods of each shape that has rules about zones. */
  validZones(): ReadonlyMap<number, readonly string[]> {
    const zones = new Map<number, readonly string[]>()
    for (const [index, shape] of this.#compiled.shapes.entries()) {
      const valid = shape && this.#topology.validZones(shape)
      if (valid !== undefined) zones.set(index, valid)
    }
    return zones
  }

  get claims(): readonly OpenClaim[] {
    return this.#claims
  }

  get isComplete(): boolean {
    return this.#undecided.length === 0
  }

  /** What the open claims come to, each as its cheapest type. */
  get cost(): PlanCost {
    return costOf(this.#claims, this.#compiled.finisher)
  }

  /** The nodes on their way and those of the claims, as spreads count them; claims that are alike once. */
  launches(): readonly Launch[] {
    const byState = Map.groupBy(this.#claims, ({ state }) => state)
    const claimed = [...byState.values()].flatMap((claims) => [
      ...new Map(claims.map((claim) => [claim.class.template, claim])).values(),
    ])
    return [...this.#compiled.onTheirWay, ...claimed]
  }

  /** Whether kube-scheduler counts the same domains for spreads once these nodes are there as were counted here. */
  foresaw(launches: readonly Launch[]): boolean {
    return this.#topology.foresaw(
      launches,
      this.#compiled.shapes.filter((shape) => shape !== undefined),
    )
  }

  /** Whether some pod would have to wait for others of its claim. */
  get isCrowded(): boolean {
    return this.#claims.some(({ pods }) => {
      const seen = new Set<PodShape>()
      return pods.some((pod, at) => {
        const shape = this.#compiled.shapeOf(pod)
        if (seen.has(shape) || !this.#crowding.concerns(shape)) return false
        seen.add(shape)
        return this.#crowding.isCrowded(pods.toSpliced(at, 1), shape)
      })
    })
  }

  /** Pods that found no place. */
  get failed(): ReadonlySet<number> {
    return new Set(this.#failures.keys())
  }

  /**
   * Pods of no group without a place that would fit on a new node of a group that is no more important: the scheduler
   * tries them before the group, which then no longer fits (gangs.md 5.4, 7.4). A more important group preempts them.
   */
  strangers(): readonly number[] {
    const { podGroups } = this.#compiled.problem
    const priorities = new Map(
      this.#groups.held.flatMap(({ group, pods }) =>
        pods.map((pod) => [pod, podGroups[group]?.priority ?? 0] as const),
      ),
    )
    if (priorities.size === 0 || this.#failures.size === 0) return []
    const grouped = new Set(podGroups.flatMap(({ members }) => members))
    const hosts = this.#claims.flatMap((claim) => {
      const held = claim.pods.flatMap((pod) => priorities.get(pod) ?? [])
      return held.length === 0 ? [] : [{ claim, priority: Math.max(...held) }]
    })
    const couldGo = remembered((shape: PodShape) =>
      hosts.some(
        ({ claim, priority }) => (shape.spec.priority ?? 0) >= priority && this.#couldTake(claim, shape),
      ),
    )
    return [...this.#failures.keys()].filter((pod) => {
      const shape = this.#compiled.shapeOf(pod)
      return shape.origin === 'pending' && !grouped.has(pod) && couldGo(shape)
    })
  }

  /** Whether a node that is launched for the claim could take a pod of this shape if nothing else ran there. */
  #couldTake(claim: OpenClaim, shape: PodShape): boolean {
    const room = this.#compiled.finisher.cheapestRoom(claim)
    if (room === undefined || !amountsFit(shape.amounts, room)) return false
    let strictest: PodShape = shape
    for (let next = shape.relaxed(); next !== undefined; next = next.relaxed()) strictest = next
    return this.#admission.targets(strictest, claim.class).length > 0
  }

  /** Pods whose node is not initialized, although they need not move to one (scheduling.md 14). */
  get prematurelyPlaced(): readonly number[] {
    const { nodes } = this.#compiled.problem
    const pods: number[] = []
    for (const [pod, index] of this.#nodeOf)
      if (nodes[index]?.initialized === false && this.#compiled.shapeOf(pod).origin !== 'deleting')
        pods.push(pod)
    return pods
  }

  /** Index of the node by pod, of pods that go to one. */
  get nodeOf(): ReadonlyMap<number, number> {
    return this.#nodeOf
  }

  /** Packs claims again whose pods follow no rule about others; see improvement/regroup.ts. */
  regroup(improvement: NonNullable<SchedulingPolicy['improvement']>, shouldStop: () => boolean): void {
    const context: RegroupContext = {
      shapeOf: (pod) => this.#compiled.shapeOf(pod),
      topology: this.#topology,
      finisher: this.#compiled.finisher,
      packings: this.#compiled.packings,
      budgetOf: (template) => this.#budgetOf(template),
      restricted: (of, rows) => this.#compiled.classes.restricted(of, rows),
      improvement,
      shouldStop,
    }
    this.#claims = sureClaims(regrouped(this.#claims, context), this.#unlikeGroups(), context)
  }

  /** Groups with a place whose members do not all ask for the same. */
  #unlikeGroups(): readonly PlacedGroup[] {
    const { podGroups } = this.#compiled.problem
    if (podGroups.length === 0) return []
    const onClaims = new Set(this.#claims.flatMap(({ pods }) => pods))
    return this.#groups.held.flatMap(({ group }) => {
      const members = podGroups[group]?.members ?? []
      const pods = new Set(members.filter((pod) => onClaims.has(pod)))
      if (pods.size === 0 || new Set(members.map((pod) => this.#compiled.shapeOf(pod))).size < 2) return []
      const byNode = Map.groupBy(
        members.filter((pod) => this.#nodeOf.has(pod)),
        (pod) => this.#nodeOf.get(pod) as number,
      )
      const nodes = [...byNode].map(([node, there]) => {
        const room = this.#ground.nodeAt(node).remaining.slice()
        for (const pod of there) addTo(room, this.#compiled.shapeOf(pod).amounts)
        return { room, pods: there }
      })
      return [{ pods, nodes }]
    })
  }

  /** As what a claim would be opened for a pod of this shape; undefined when none would. */
  classFor(shape: PodShape): ClaimClass | undefined {
    for (const template of this.#compiled.templates) {
      if (this.#budgetOf(template).nodesExhausted) continue
      const affordable = this.#budgetOf(template).affordable()
      if (affordable.length === 0) continue
      const opened = this.#compiled.classes.opened(template, affordable)
      const targets = this.#admission.confined(shape, this.#admission.targets(shape, opened))
      const admission = this.#admission.open(shape, targets)
      if (admission !== undefined) return 'kind' in admission ? undefined : admission.class
    }
    return undefined
  }

  /**
   * Puts the pods of the claims on claims as planned instead. If others have claims with them, or limits are
   * against it, the claims stay as first fit made them, and are judged as such.
   */
  rearrange(bins: readonly PlannedBin[]): void {
    const wanted = new Set(bins.flatMap(({ pods }) => pods))
    const old = this.#claims.filter(({ pods }) => pods.some((pod) => wanted.has(pod)))
    const [model] = old
    if (old.some(({ taker }) => taker !== undefined)) return
    if (model === undefined || old.reduce((sum, { pods }) => sum + pods.length, 0) !== wanted.size) return
    const renewed = bins.map((bin) => claimOf(bin, model, (pod) => this.#compiled.shapeOf(pod)))
    // The claims of first fit may be of several NodePools, each with limits of its own.
    for (const template of new Set(bins.map((bin) => bin.class.template))) {
      const budget = this.#budgetOf(template)
      const held = (claims: readonly OpenClaim[]) =>
        claims
          .filter((claim) => claim.class.template === template)
          .map((claim) => this.#compiled.finisher.holding(claim))
      if (budget.isLimited && !budget.isNoMore(held(renewed), held(old))) return
    }
    this.#claims = [...this.#claims.filter((claim) => !old.includes(claim)), ...renewed]
  }

  /**
   * The decision, by indexes of the problem.
   * @param onFault told of what a reason could not be computed for; without it, that is thrown.
   */
  outcome(onFault?: (error: unknown) => void): Outcome {
    for (const error of this.#faults.splice(0)) {
      if (onFault === undefined) throw error
      onFault(error)
    }
    const claims: FinishedClaim[] = []
    const failures = this.#finalFailures(onFault)
    const { finisher, problem } = this.#compiled
    for (const claim of this.#claims) {
      const { template } = claim.class
      const finished = finisher.finish(claim, this.#compiled.poolIndexOf(template))
      if (!('kind' in finished)) claims.push({ ...finished, deviceDrivers: this.#devices.driversOf(claim) })
      else {
        const reason: PodReason = {
          kind: 'truncationBrokeMinValues',
          nodePool: template.name,
          missing: finished.missing,
        }
        for (const pod of claim.pods) failures.set(pod, reason)
      }
    }
    this.#refuseUninitialized(failures)
    const firstUid = ({ pods }: FinishedClaim) => problem.uids[pods[0] ?? -1]
    return {
      claims: claims.toSorted(
        (a, b) => compareText(a.nodePool, b.nodePool) || compareText(firstUid(a), firstUid(b)),
      ),
      placements: this.#placementsByUid(),
      failures: new Map([...failures].toSorted(([a], [b]) => this.#byUid(a, b))),
      undecided: this.#undecided.toSorted((a, b) => this.#byUid(a, b)),
      podGroups: this.#groups.outcomes,
    }
  }

  #placementsByUid(): Int32Array {
    const pods = [...this.#nodeOf.keys()].sort((a, b) => this.#byUid(a, b))
    return Int32Array.from(pods.flatMap((pod) => [pod, this.#nodeOf.get(pod) as number]))
  }

  #byUid(a: number, b: number): number {
    const { uids } = this.#compiled.problem
    return compareText(uids[a], uids[b])
  }

  /** In a disruption, only pods that must move anyway may count on a node that is still starting. */
  #refuseUninitialized(failures: Map<number, PodReason>): void {
    if (this.#compiled.problem.policy.simulation !== 'disruption') return
    for (const pod of this.prematurelyPlaced) {
      const node = this.#compiled.problem.nodes[this.#nodeOf.get(pod) ?? -1]?.name ?? ''
      this.#nodeOf.delete(pod)
      failures.set(pod, { kind: 'uninitializedNode', node })
    }
  }

  #finalFailures(onFault: ((error: unknown) => void) | undefined): Map<number, PodReason> {
    const reasons = new Map<PodShape | PodReason, PodReason>()
    const failures = new Map<number, PodReason>()
    for (const [pod, problem] of this.#scope.unreadable) failures.set(pod, { kind: 'malformed', problem })
    for (const [pod, failure] of this.#failures) {
      let reason = reasons.get(failure)
      if (reason === undefined) {
        reason = 'kind' in failure ? this.#devices.detailed(failure) : this.#reasonOf(failure, onFault)
        reasons.set(failure, reason)
      }
      failures.set(pod, reason)
    }
    return failures
  }

  #reasonOf(shape: PodShape, onFault: ((error: unknown) => void) | undefined): PodReason {
    try {
      return this.#explain(shape)
    } catch (error) {
      if (onFault === undefined) throw error
      onFault(error)
      return { kind: 'unexplained' }
    }
  }

  #explain(shape: PodShape): PodReason {
    if (shape.usesResourceClaims) return { kind: 'resourceClaims' }
    if (this.#compiled.problem.pools.length === 0) return { kind: 'noPools' }
    let last = shape
    for (let next = shape.relaxed(); next !== undefined; next = next.relaxed()) last = next
    return explain(last, this.#compiled.templates, this.#newHost, {
      compiled: this.#compiled,
      topology: this.#topology,
      budgetOf: (template) => this.#budgetOf(template),
    })
  }

  /** The pods that are left once those with a plan are where it says. */
  #withoutPlanned(pods: readonly number[]): readonly number[] {
    if (this.#planned.size === 0) return pods
    let left = pods
    for (;;) {
      // A pod may have to wait for another one that it follows.
      const rest = left.filter((pod) => !this.#placeAsPlanned(pod, this.#groups.shapeOf(pod)))
      if (rest.length === left.length) return rest
      left = rest
    }
  }

  /** Keeps a pod on the node that was launched for it, giving up wishes only there. */
  #placeAsPlanned(pod: number, wanted: PodShape): boolean {
    const { nodes, volumeClaims } = this.#compiled.problem
    const input = nodes[this.#planned.get(pod) ?? -1]
    const node = input && this.#nodes.of(input)
    if (node === undefined) return false
    this.#compiled.pace.about(pod)
    const volumes = volumeClaims.get(pod)
    let shape: PodShape | undefined = wanted
    if (shape.usesResourceClaims) return false
    if (this.#takenClaimOf(pod) !== undefined) return false
    this.#devices.restart()
    while (shape !== undefined && !this.#nodes.takes(node, shape, volumes, this.#devices.asked(pod, shape)))
      shape = shape.relaxed()
    if (shape === undefined) return false
    this.#onNode(node, pod, shape)
    this.#hasPlace(pod)
    this.#failures.delete(pod)
    return true
  }

  get #planned(): ReadonlyMap<number, number> {
    return this.#scope.planned ?? this.#compiled.problem.planned
  }

  #onNode(node: NodeFill, pod: number, shape: PodShape): void {
    this.#devices.takeOnNode(node, pod, shape)
    this.#nodes.take(node, pod, shape, this.#compiled.problem.volumeClaims.get(pod))
    this.#nodeOf.set(pod, this.#ground.indexOf(node))
    this.#log.note(() => this.#nodeOf.delete(pod))
  }

  #takenClaimOf(pod: number): string | undefined {
    return this.#compiled.problem.exclusiveClaims.get(pod)?.find((claim) => this.#takenClaims.has(claim))
  }

  #hasPlace(pod: number): void {
    this.#placements++
    this.#placed++
    this.#log.note(() => this.#placed--)
    for (const claim of this.#compiled.problem.exclusiveClaims.get(pod) ?? []) {
      this.#takenClaims.add(claim)
      this.#log.note(() => this.#takenClaims.delete(claim))
    }
  }

  #place(pod: number, wanted: PodShape): boolean {
    this.#compiled.pace.about(pod)
    const claim = this.#takenClaimOf(pod)
    if (claim !== undefined) {
      this.#failures.set(pod, { kind: 'exclusiveClaim', claim })
      return false
    }
    const memory = this.#memoryOf(wanted)
    const volumes = this.#compiled.problem.volumeClaims.get(pod)
    if (memory.failedAt !== this.#placements || volumes !== undefined) {
      this.#devices.restart()
      const outcome = wanted.usesResourceClaims ? 'refused' : this.#tryShapes(pod, wanted)
      if (outcome === 'placed') {
        this.#hasPlace(pod)
        this.#failures.delete(pod)
        return true
      }
      if (typeof outcome === 'object') {
        this.#failures.set(pod, outcome)
        return false
      }
      memory.failedAt = this.#placements
      memory.devices = this.#devices.refusalOf(wanted)
    }
    if (memory.devices !== undefined) {
      this.#failures.set(pod, memory.devices)
      return false
    }
    this.#failures.set(pod, wanted)
    return false
  }

  #tryShapes(pod: number, wanted: PodShape): 'placed' | 'refused' | PodReason {
    let isTried = false
    for (let shape: PodShape | undefined = wanted; shape !== undefined; shape = shape.relaxed()) {
      // No node is bought for the first of several terms while one is there that meets another.
      for (let term = isTried ? undefined : shape; term !== undefined; term = otherTermOf(term))
        if (this.#onWhatIsThere(pod, term)) return 'placed'
      const outcome = this.#onNewClaim(pod, shape)
      if (outcome !== 'refused') return outcome
      isTried = shape.hasOtherTerm
    }
    return 'refused'
  }

  #onWhatIsThere(pod: number, shape: PodShape): boolean {
    this.#compiled.pace.step()
    const volumes = this.#compiled.problem.volumeClaims.get(pod)
    const node = this.#nodes.first(shape, volumes, this.#devices.asked(pod, shape))
    if (node === undefined) return this.#onOpenClaim(pod, shape)
    this.#onNode(node, pod, shape)
    return true
  }

  #memoryOf(shape: PodShape): ShapeMemory {
    return (this.#memory[shape.index] ??= { reach: [], seen: 0, failedAt: -1, devices: undefined })
  }

  /** Open classes that some pod of the shape may enter. */
  #reachOf(shape: PodShape): readonly Reach[] {
    const memory = this.#memoryOf(shape)
    for (; memory.seen < this.#openClasses.length; memory.seen++) {
      const from = this.#openClasses[memory.seen] as ClaimClass
      const targets = sameKindOf(from, this.#admission.targets(shape, from))
      const queue = this.#queues.get(from)
      if (targets.length > 0 && queue !== undefined) memory.reach.push({ from, queue, targets })
    }
    return memory.reach
  }

  #onOpenClaim(pod: number, shape: PodShape): boolean {
    const reach = this.#reachOf(shape)
    if (reach.length === 0) return false
    const hosts = this.#topology.boundHosts(shape)
    if (hosts !== undefined) return this.#onBoundHost(pod, shape, hosts)
    const crowding = this.#crowding
    if (this.#keepsApart && crowding.concerns(shape) && this.#onClaimOf(reach, pod, shape, { crowding }))
      return true
    return this.#onClaimOf(reach, pod, shape, {})
  }

  #onClaimOf(reach: readonly Reach[], pod: number, shape: PodShape, entry: Entry): boolean {
    if (this.#selection === 'thrifty') return this.#onThriftiest(reach, pod, shape, entry)
    let best: OpenClaim | undefined
    let bestConfined: readonly ClaimClass[] = []
    for (const { from, queue, targets } of reach) {
      if (queue.isEmpty) continue
      const confined = sameKindOf(from, this.#admission.confined(shape, targets))
      if (confined.length === 0) continue
      const found = queue.first(shape.index, best, (claim) => {
        this.#compiled.pace.step()
        const answer = this.#answer(
          this.#admission.answer(claim, shape, targets, confined),
          claim,
          shape,
          entry,
        )
        return this.#devices.answer(answer, claim, pod, shape, confined)
      })
      if (found === undefined) continue
      best = found
      bestConfined = confined
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  /** The claim whose price rises least, among those that would be tried first. */
  #onThriftiest(reach: readonly Reach[], pod: number, shape: PodShape, entry: Entry): boolean {
    const { finisher } = this.#compiled
    let best: OpenClaim | undefined
    let bestRise: PricePerHour
    let bestConfined: readonly ClaimClass[] = []
    for (const { from, queue, targets } of reach) {
      if (queue.isEmpty) continue
      const confined = sameKindOf(from, this.#admission.confined(shape, targets))
      if (confined.length === 0) continue
      const asksOnlyRoom = this.#admission.asksOnlyRoom(from, targets, confined)
      let choices = this.#choices
      // The first claim whose price stays ends the search: none behind it is better.
      queue.first(shape.index, bestRise === 0 ? best : undefined, (claim) => {
        this.#compiled.pace.step()
        const rise = finisher.rise(claim, shape.amounts)
        if (asksOnlyRoom && rise === undefined && !holdsMore(from, claim.amounts, shape.amounts))
          return 'never'
        const given = asksOnlyRoom
          ? this.#admission.answerWithRoom(claim, shape)
          : this.#admission.answer(claim, shape, targets, confined)
        const answer = this.#devices.answer(
          this.#answer(given, claim, shape, entry),
          claim,
          pod,
          shape,
          confined,
        )
        if (answer !== 'accepts') return answer
        choices--
        const order = comparePrices(rise, bestRise)
        if (order < 0 || (order === 0 && (best === undefined || isBefore(claim, best)))) {
          best = claim
          bestRise = rise
          bestConfined = confined
        }
        return rise !== 0 && choices > 0 ? 'notNow' : 'accepts'
      })
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  /** What a claim says that would take the pod as far as rules and room go. */
  #answer(given: Answer, claim: OpenClaim, shape: PodShape, { crowding, growing }: Entry): Answer {
    if (given !== 'accepts') return given
    if (crowding?.isCrowded(claim.pods, shape) === true) return 'notNow'
    const { isPriced, template } = claim.class
    const mayGrow =
      isPriced || growing === template || this.#compiled.finisher.keepsTypes(claim, shape.amounts)
    return mayGrow ? 'accepts' : 'notNow'
  }

  /** An affinity names the nodes: only claims among them are asked. */
  #onBoundHost(pod: number, shape: PodShape, hosts: Iterable<number>): boolean {
    let best: OpenClaim | undefined
    let bestConfined: readonly ClaimClass[] = []
    for (const host of hosts) {
      const claim = this.#claimOfHost.get(host)
      if (claim === undefined || (best !== undefined && isBefore(best, claim))) continue
      const targets = this.#admission.targets(shape, claim.class)
      const confined = this.#admission.confined(shape, targets)
      const answer = this.#admission.answer(claim, shape, targets, confined)
      if (this.#devices.answer(answer, claim, pod, shape, confined) !== 'accepts') continue
      best = claim
      bestConfined = confined
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  #enter(claim: OpenClaim, pod: number, shape: PodShape, confined: readonly ClaimClass[]): boolean {
    const withDevices = this.#devices.onClaim(claim, pod, shape, confined)
    const admission =
      shape.claims.length > 0 ? withDevices?.admission : this.#admission.admit(claim, shape, confined)
    if (admission === undefined) return false
    const queue = this.#queueOf(claim.class)
    this.#log.noteFilling(claim, queue)
    queue.remove(claim)
    this.#fill(claim, pod, shape, admission)
    if (withDevices !== undefined) this.#devices.takeOnClaim(claim, withDevices)
    return true
  }

  #onNewClaim(
    pod: number,
    shape: PodShape,
    templates: readonly Template[] = this.#compiled.templates,
  ): 'placed' | 'refused' | PodReason {
    for (const template of templates) {
      this.#compiled.pace.step()
      if (this.#budgetOf(template).nodesExhausted) continue
      const affordable = this.#budgetOf(template).affordable()
      if (affordable.length === 0) continue
      const opened = this.#compiled.classes.opened(template, affordable)
      const targets = this.#admission.targets(shape, opened)
      this.#topology.expectOnClaim(this.#newHost, template.index)
      if (targets.length === 0 || !this.#topology.allowsHost(shape, this.#newHost)) continue
      const confined = this.#admission.confined(shape, targets)
      if (this.#devices.concerns(shape)) {
        const opening = this.#devices.onNewClaim(pod, shape, confined)
        if (opening === undefined) continue
        if ('kind' in opening) return opening
        const claim = this.#open(pod, shape, opening.offered.admission)
        claim.taker = opening.taker
        this.#devices.takeOnClaim(claim, opening.offered)
        return 'placed'
      }
      const priced = confined.filter(({ isPriced }) => isPriced)
      const admission = this.#admission.open(shape, priced) ?? this.#unpriced(pod, shape, template, confined)
      if (admission === undefined) continue
      if (admission === 'placed') return 'placed'
      if ('kind' in admission) return { kind: 'reservationDeferred', variant: admission.variant }
      this.#open(pod, shape, admission)
      return 'placed'
    }
    return 'refused'
  }

  /**
   * What a NodePool sells at unknown prices is for pods for which it sells nothing else: they fill claims of that
   * kind, whatever types these grow to, before another one is opened.
   */
  #unpriced(
    pod: number,
    shape: PodShape,
    template: Template,
    confined: readonly ClaimClass[],
  ): 'placed' | ReturnType<ClaimAdmission['open']> {
    const unpriced = confined.flatMap((target) => this.#compiled.classes.unpriced(target) ?? [])
    if (unpriced.length === 0) return undefined
    const reach = this.#reachOf(shape).filter(({ from }) => !from.isPriced && from.template === template)
    if (this.#onClaimOf(reach, pod, shape, { growing: template })) return 'placed'
    return this.#admission.open(shape, unpriced)
  }

  #open(pod: number, shape: PodShape, admission: Admission): OpenClaim {
    const claim: OpenClaim = {
      number: this.#claims.length,
      class: admission.class,
      state: admission.class.state,
      host: this.#newHost,
      taints: admission.class.template.taints,
      isNode: false,
      amounts: new Float64Array(this.#compiled.space.size),
      pods: [],
      hostPorts: [],
      minValuesRelaxed: admission.minValuesRelaxed,
      reservations: new Set(),
      taker: undefined,
      arrival: 0,
      slot: 0,
      cheapest: 0,
      rise: undefined,
    }
    const budget = this.#budgetOf(admission.class.template)
    if (this.#log.isOpen) {
      const uncharge = budget.saved()
      this.#log.noteOpening(claim, () => {
        uncharge()
        this.#claims.pop()
        this.#claimOfHost.delete(claim.host)
        this.#newHost = claim.host
      })
    }
    this.#claims.push(claim)
    this.#claimOfHost.set(claim.host, claim)
    this.#newHost = this.#topology.hostOf(placeholder(this.#claims.length))
    this.#fill(claim, pod, shape, admission)
    if (budget.isLimited) budget.charge(this.#compiled.finisher.holding(claim))
    return claim
  }

  #fill(claim: OpenClaim, pod: number, shape: PodShape, admission: Admission): void {
    if (claim.class !== admission.class) claim.cheapest = 0
    claim.class = admission.class
    claim.state = this.#compiled.classes.located(claim.class, this.#topology.domainKeys)
    claim.rise = undefined
    claim.pods.push(pod)
    claim.arrival = this.#placements
    addTo(claim.amounts, shape.amounts)
    if (shape.hostPorts.length > 0) claim.hostPorts = [...claim.hostPorts, ...shape.hostPorts]
    if (this.#reservations !== undefined && admission.reservations !== claim.reservations) {
      this.#reservations.exchange(claim.reservations, admission.reservations)
      claim.reservations = admission.reservations
    }
    this.#devices.retain(claim)
    this.#queueOf(claim.class).add(claim)
    this.#topology.record(shape, claim)
  }

  #budgetOf(template: Template): PoolBudget {
    return this.#budgets.get(template) as PoolBudget
  }

  #queueOf(of: ClaimClass): ClaimQueue {
    let queue = this.#queues.get(of)
    if (queue === undefined) {
      queue = new ClaimQueue()
      this.#queues.set(of, queue)
      this.#openClasses.push(of)
    }
    return queue
  }
}

function otherTermOf(shape: PodShape): PodShape | undefined {
  return shape.hasOtherTerm ? shape.relaxed() : undefined
}

function placeholder(number: number): string {
  return `hostname-placeholder-${String(number).padStart(4, '0')}`
}

/** A claim whose price is known does not become one whose price is not. */
function sameKindOf(from: ClaimClass, targets: readonly ClaimClass[]): readonly ClaimClass[] {
  const isSame = ({ isPriced }: ClaimClass) => isPriced || !from.isPriced
  return targets.every(isSame) ? targets : targets.filter(isSame)
}
