/** Places the pods of one simulation, one by one: on a node, an open claim, or a new claim (scheduling.md 6). */
import { comparePrices, type PricePerHour, type Resources } from '@tenon/api'
import type { PodReason } from '../reasons/reasons.ts'
import type { ClaimAdmission } from './claims/claim-admission.ts'
import { type ClaimClass, holdsMore } from './claims/claim-class.ts'
import { type EnterableClass, OpenClaimSet } from './claims/open-claim-set.ts'
import { type Answer, isBefore, type OpenClaim } from './claims/open-claims.ts'
import type { Template } from './claims/pool-template.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import type { PodDevices } from './devices/pod-devices.ts'
import type { NodeFill } from './nodes/node-fill.ts'
import type { NodeQueue } from './nodes/node-queue.ts'
import type { SchedulingControl } from './pace.ts'
import type { TrialLog } from './pod-groups/trial-log.ts'
import { Crowding } from './pods/crowding.ts'
import type { PodShape } from './pods/pod-shape.ts'
import type { SchedulerState } from './scheduler-state.ts'
import type { PodTopology } from './topology/pod-topology.ts'

/** Pods placed between two calls of `shouldStop`. */
const podsPerCheck = 64
/** Claims compared for one pod by `cheapestFit`, and comparisons in one simulation. */
const mostCompared = 128
const comparisons = 2_000_000

/** What one simulation decides, and from which state. */
export interface Scope {
  readonly state: SchedulerState
  /** Pods to place, in the order in which they are tried. */
  readonly pods: readonly number[]
  /** What is wrong with pods that cannot be read, by pod. */
  readonly unreadable: ReadonlyMap<number, string>
  /** What the pool with this index in the problem has in use. */
  readonly usageOf: (pool: number) => Resources
  /** Index of the node that each pod should go to if it can; by default as the problem says. */
  readonly planned?: ReadonlyMap<number, number>
}

/** How a claim is chosen among those that accept a pod: the first one, or the one whose price rises least. */
export type Selection = 'firstFit' | 'cheapestFit'

export interface PlacingOptions {
  readonly selection: Selection
  /** Whether a pod joins pods for which it would have to wait (crowding.ts) only if no other open claim accepts it. */
  readonly avoidsCrowding: boolean
}

/** Which open claims a pod may enter. */
interface EntryRules {
  /** Excludes claims on which the pod would have to wait for others. */
  readonly crowding?: Crowding
  /** The NodePool whose claims of unknown price may lose types for the pod, as it sells nothing else for it. */
  readonly growing?: Template
}

/** The last unsuccessful attempt for a shape. */
interface FailedAttempt {
  /** The count of placements then: the shape does not fit before this count changes. */
  readonly placements: number
  /** Set when devices are what it lacks. */
  readonly devices: PodReason | undefined
}

export class PodPlacing {
  readonly claims: OpenClaimSet
  readonly log: TrialLog
  readonly crowding: Crowding
  /** Pods that cannot be scheduled: the reason, or the shape from which it is found out at the end. */
  readonly failures = new Map<number, PodReason | PodShape>()
  readonly #compiled: CompiledProblem
  readonly #state: SchedulerState
  readonly #nodes: NodeQueue
  readonly #topology: PodTopology
  readonly #admission: ClaimAdmission
  readonly #devices: PodDevices
  readonly #planned: ReadonlyMap<number, number>
  readonly #options: PlacingOptions
  readonly #mostCompared: number
  readonly #nodeOf = new Map<number, number>()
  readonly #failed: (FailedAttempt | undefined)[] = []
  /** Shapes of pods whose group has settled on a domain. */
  readonly #confinedShapes = new Map<number, PodShape>()
  /** ReadWriteOncePod claims that a placed pod uses. */
  readonly #takenClaims = new Set<string>()
  #undecided: readonly number[] = []
  /** Grows with each placement, and whenever one is undone. */
  #placements = 0
  #placed = 0

  constructor({ state, pods, usageOf, planned }: Scope, options: PlacingOptions) {
    const { compiled } = state
    this.#compiled = compiled
    this.#state = state
    this.#nodes = state.nodes
    this.#topology = state.topology
    this.#planned = planned ?? compiled.problem.planned
    this.#options = options
    this.claims = new OpenClaimSet(state, usageOf)
    this.log = this.claims.log
    this.#admission = this.claims.admission
    this.#devices = this.claims.devices
    this.crowding = new Crowding(compiled)
    this.#mostCompared = Math.max(8, Math.min(mostCompared, Math.floor(comparisons / pods.length)))
  }

  /** Index of the node by pod, of pods that go to one. */
  get nodeOf(): ReadonlyMap<number, number> {
    return this.#nodeOf
  }

  /** Pods that were not decided when the time was over. */
  get undecided(): readonly number[] {
    return this.#undecided
  }

  get isComplete(): boolean {
    return this.#undecided.length === 0
  }

  /** How many pods are placed. */
  get placed(): number {
    return this.#placed
  }

  isPlanned(pod: number): boolean {
    return this.#planned.has(pod)
  }

  /** The shape of a pod, in the domain of its group if it has one. */
  shapeOf(pod: number): PodShape {
    return this.#confinedShapes.get(pod) ?? this.#compiled.shapeOf(pod)
  }

  /** Lets a pod go to one domain only. */
  confine(pod: number, key: string, domain: string): void {
    this.#confinedShapes.set(pod, this.#compiled.shapeOf(pod).within(key, domain))
  }

  /** Leaves these pods undecided, except those that are known to fail. */
  leaveUndecided(pods: readonly number[]): void {
    this.#undecided = pods.filter((each) => !this.failures.has(each))
  }

  /** Leaves these pods undecided beside the others. */
  addUndecided(pods: readonly number[]): void {
    this.#undecided = [...this.#undecided, ...pods]
  }

  /** Starts to note changes, so that they can be undone. What did not fit during the trial may fit after that. */
  beginTrial(): void {
    this.log.begin()
    this.log.note(() => this.#placements++)
  }

  /** Ends in the middle of a search: undoes what the search and an open trial have changed. */
  interrupt(pods: readonly number[]): void {
    this.log.undo()
    this.log.keep()
    const placed = new Set([...this.#nodeOf.keys(), ...this.claims.all.flatMap((claim) => claim.pods)])
    this.leaveUndecided(pods.filter((pod) => !placed.has(pod)))
  }

  /**
   * Places planned pods where the plan says and tries all others, those that fail again for as long as others succeed.
   * @returns the pods that do not fit.
   */
  placeAll(pods: readonly number[], control: SchedulingControl): readonly number[] {
    let queue = this.placePlanned(pods)
    while (queue.length > 0) {
      const failed: number[] = []
      for (const [done, pod] of queue.entries()) {
        if (done % podsPerCheck === podsPerCheck - 1 && control.shouldStop()) {
          this.leaveUndecided(queue.slice(done))
          return queue.slice(done)
        }
        if (!this.place(pod, this.shapeOf(pod))) failed.push(pod)
      }
      if (failed.length === queue.length) return failed
      queue = failed
    }
    return []
  }

  /** Places planned pods where the plan says. @returns the other pods, and those that do not fit there. */
  placePlanned(pods: readonly number[]): readonly number[] {
    if (this.#planned.size === 0) return pods
    let left = pods
    for (;;) {
      // A pod may have to wait for the pod that its affinity names.
      const rest = left.filter((pod) => !this.placeAsPlanned(pod, this.shapeOf(pod)))
      if (rest.length === left.length) return rest
      left = rest
    }
  }

  /** Keeps a pod on the node that was launched for it, even if that costs some of its preferences. */
  placeAsPlanned(pod: number, wanted: PodShape): boolean {
    const { nodes, volumeClaims } = this.#compiled.problem
    const input = nodes[this.#planned.get(pod) ?? -1]
    const node = input && this.#nodes.of(input)
    if (node === undefined) return false
    this.#compiled.pace.about(pod)
    if (wanted.usesResourceClaims || this.#takenClaimOf(pod) !== undefined) return false
    this.#devices.restart()
    const volumes = volumeClaims.get(pod)
    for (let shape: PodShape | undefined = wanted; shape !== undefined; shape = shape.relaxed()) {
      if (!this.#nodes.takes(node, shape, volumes, this.#devices.asked(pod, shape))) continue
      this.#takeNode(node, pod, shape)
      this.#notePlaced(pod)
      return true
    }
    return false
  }

  /** Places a pod on this claim, or on a new claim of this template. @returns the claim, if it accepts the pod. */
  placeOn(pod: number, on: OpenClaim | Template): OpenClaim | undefined {
    const wanted = this.#compiled.shapeOf(pod)
    this.#compiled.pace.about(pod)
    if (this.#takenClaimOf(pod) !== undefined || wanted.usesResourceClaims) return undefined
    this.#devices.restart()
    for (let shape: PodShape | undefined = wanted; shape !== undefined; shape = shape.relaxed()) {
      const isPlaced =
        'host' in on ? this.#onHosts(pod, shape, [on.host]) : this.#onNewClaim(pod, shape, [on]) === 'placed'
      if (!isPlaced) continue
      this.#countPlaced(pod)
      return 'host' in on ? on : this.claims.all.at(-1)
    }
    return undefined
  }

  /** Places a pod anywhere as one of this shape; if it does not fit, {@link failures} says so. */
  place(pod: number, wanted: PodShape): boolean {
    this.#compiled.pace.about(pod)
    const claim = this.#takenClaimOf(pod)
    if (claim !== undefined) {
      this.failures.set(pod, { kind: 'exclusiveClaim', claim })
      return false
    }
    const known = this.#failed[wanted.index]
    let devices = known?.devices
    if (known?.placements !== this.#placements || this.#compiled.problem.volumeClaims.has(pod)) {
      this.#devices.restart()
      const outcome = wanted.usesResourceClaims ? 'refused' : this.#tryShapes(pod, wanted)
      if (outcome === 'placed') {
        this.#notePlaced(pod)
        return true
      }
      if (typeof outcome === 'object') {
        this.failures.set(pod, outcome)
        return false
      }
      devices = this.#devices.refusalOf(wanted)
      this.#failed[wanted.index] = { placements: this.#placements, devices }
    }
    this.failures.set(pod, devices ?? wanted)
    return false
  }

  /** The class of the claim to open for this pod shape, or undefined if no NodePool can hold it. */
  classFor(shape: PodShape): ClaimClass | undefined {
    for (const template of this.#compiled.templates) {
      const opened = this.#openedClass(template)
      if (opened === undefined) continue
      const targets = this.#admission.confined(shape, this.#admission.targets(shape, opened))
      const admission = this.#admission.open(shape, targets)
      if (admission !== undefined) return 'kind' in admission ? undefined : admission.class
    }
    return undefined
  }

  #tryShapes(pod: number, wanted: PodShape): 'placed' | 'refused' | PodReason {
    let isTried = false
    for (let shape: PodShape | undefined = wanted; shape !== undefined; shape = shape.relaxed()) {
      // Do not launch a node for the first of several terms while an existing one meets another term.
      for (let term = isTried ? undefined : shape; term !== undefined; term = otherTermOf(term))
        if (this.#onExisting(pod, term)) return 'placed'
      const outcome = this.#onNewClaim(pod, shape, this.#compiled.templates)
      if (outcome !== 'refused') return outcome
      isTried = shape.hasOtherTerm
    }
    return 'refused'
  }

  #onExisting(pod: number, shape: PodShape): boolean {
    this.#compiled.pace.step()
    const volumes = this.#compiled.problem.volumeClaims.get(pod)
    const node = this.#nodes.first(shape, volumes, this.#devices.asked(pod, shape))
    if (node === undefined) return this.#onOpenClaim(pod, shape)
    this.#takeNode(node, pod, shape)
    return true
  }

  #onOpenClaim(pod: number, shape: PodShape): boolean {
    const classes = this.claims.enterableBy(shape)
    if (classes.length === 0) return false
    const hosts = this.#topology.boundHosts(shape)
    if (hosts !== undefined) return this.#onHosts(pod, shape, hosts)
    const { crowding } = this
    if (this.#options.avoidsCrowding && crowding.concerns(shape)) {
      if (this.#onClaimOf(classes, pod, shape, { crowding })) return true
    }
    return this.#onClaimOf(classes, pod, shape, {})
  }

  #onClaimOf(classes: readonly EnterableClass[], pod: number, shape: PodShape, rules: EntryRules): boolean {
    return this.#options.selection === 'firstFit'
      ? this.#onFirst(classes, pod, shape, rules)
      : this.#onCheapest(classes, pod, shape, rules)
  }

  #onFirst(classes: readonly EnterableClass[], pod: number, shape: PodShape, rules: EntryRules): boolean {
    let best: OpenClaim | undefined
    let bestConfined: readonly ClaimClass[] = []
    for (const each of classes) {
      const { queue, targets } = each
      if (queue.isEmpty) continue
      const confined = this.claims.confined(each, shape)
      if (confined.length === 0) continue
      const found = queue.first(shape.index, best, (claim) => {
        this.#compiled.pace.step()
        const answer = this.#admission.answer(claim, shape, targets, confined)
        return this.#devices.answer(this.#allowed(answer, claim, shape, rules), claim, pod, shape, confined)
      })
      if (found === undefined) continue
      best = found
      bestConfined = confined
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  /** Enters the claim whose price rises least, among the first ones that accept the pod. */
  #onCheapest(classes: readonly EnterableClass[], pod: number, shape: PodShape, rules: EntryRules): boolean {
    const { finisher, pace } = this.#compiled
    let best: OpenClaim | undefined
    let bestRise: PricePerHour
    let bestConfined: readonly ClaimClass[] = []
    for (const each of classes) {
      const { from, queue, targets } = each
      if (queue.isEmpty) continue
      const confined = this.claims.confined(each, shape)
      if (confined.length === 0) continue
      const asksOnlyRoom = this.#admission.asksOnlyRoom(from, targets, confined)
      let left = this.#mostCompared
      // The first claim whose price does not rise ends the search: none behind it is better.
      queue.first(shape.index, bestRise === 0 ? best : undefined, (claim) => {
        pace.step()
        const rise = finisher.rise(claim, shape.amounts)
        if (asksOnlyRoom && rise === undefined && !holdsMore(from, claim.amounts, shape.amounts))
          return 'never'
        const given = asksOnlyRoom
          ? this.#admission.answerWithRoom(claim, shape)
          : this.#admission.answer(claim, shape, targets, confined)
        const allowed = this.#allowed(given, claim, shape, rules)
        const answer = this.#devices.answer(allowed, claim, pod, shape, confined)
        if (answer !== 'accepts') return answer
        left--
        const order = comparePrices(rise, bestRise)
        if (order < 0 || (order === 0 && (best === undefined || isBefore(claim, best)))) {
          best = claim
          bestRise = rise
          bestConfined = confined
        }
        return rise !== 0 && left > 0 ? 'notNow' : 'accepts'
      })
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  /** The answer of a claim under the rules for entering it. */
  #allowed(given: Answer, claim: OpenClaim, shape: PodShape, { crowding, growing }: EntryRules): Answer {
    if (given !== 'accepts') return given
    if (crowding?.isCrowded(claim.pods, shape) === true) return 'notNow'
    const { isPriced, template } = claim.class
    const mayGrow =
      isPriced || growing === template || this.#compiled.finisher.keepsTypes(claim, shape.amounts)
    return mayGrow ? 'accepts' : 'notNow'
  }

  /** Asks the claims of these hosts only, as affinity binds the pod to them. */
  #onHosts(pod: number, shape: PodShape, hosts: Iterable<number>): boolean {
    let best: OpenClaim | undefined
    let bestConfined: readonly ClaimClass[] = []
    for (const host of hosts) {
      const claim = this.claims.onHost(host)
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
    const admission = shape.usesDevices
      ? withDevices?.admission
      : this.#admission.admit(claim, shape, confined)
    if (admission === undefined) return false
    this.claims.add(claim, pod, shape, admission, this.#placements)
    if (withDevices !== undefined) this.#devices.takeOnClaim(claim, withDevices)
    return true
  }

  #onNewClaim(
    pod: number,
    shape: PodShape,
    templates: readonly Template[],
  ): 'placed' | 'refused' | PodReason {
    const host = this.claims.nextHost
    for (const template of templates) {
      this.#compiled.pace.step()
      const opened = this.#openedClass(template)
      if (opened === undefined) continue
      const targets = this.#admission.targets(shape, opened)
      this.#topology.expectOnClaim(host, template.index)
      if (targets.length === 0 || !this.#topology.allowsHost(shape, host)) continue
      const confined = this.#admission.confined(shape, targets)
      if (this.#devices.concerns(shape)) {
        const opening = this.#devices.onNewClaim(pod, shape, confined)
        if (opening === undefined) continue
        if ('kind' in opening) return opening
        const claim = this.claims.open(pod, shape, opening.offered.admission, this.#placements)
        claim.consumer = opening.consumer
        this.#devices.takeOnClaim(claim, opening.offered)
        return 'placed'
      }
      const priced = confined.filter(({ isPriced }) => isPriced)
      const admission = this.#admission.open(shape, priced) ?? this.#unpriced(pod, shape, template, confined)
      if (admission === undefined) continue
      if (admission === 'placed') return 'placed'
      if ('kind' in admission) return { kind: 'reservationDeferred', variant: admission.variant }
      this.claims.open(pod, shape, admission, this.#placements)
      return 'placed'
    }
    return 'refused'
  }

  /** The class of a new claim of the template; undefined when the limits of its NodePool are used up. */
  #openedClass(template: Template): ClaimClass | undefined {
    const budget = this.claims.budgetOf(template)
    if (budget.nodesExhausted) return undefined
    const affordable = budget.affordable()
    return affordable.length === 0 ? undefined : this.#compiled.classes.opened(template, affordable)
  }

  /**
   * Types of unknown price are only for pods for which the NodePool sells nothing else. Such pods fill claims of that
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
    const classes = this.claims
      .enterableBy(shape)
      .filter(({ from }) => !from.isPriced && from.template === template)
    if (this.#onClaimOf(classes, pod, shape, { growing: template })) return 'placed'
    return this.#admission.open(shape, unpriced)
  }

  #takeNode(node: NodeFill, pod: number, shape: PodShape): void {
    this.#devices.takeOnNode(node, pod, shape)
    this.#nodes.take(node, pod, shape, this.#compiled.problem.volumeClaims.get(pod))
    this.#nodeOf.set(pod, this.#state.indexOf(node))
    this.log.note(() => this.#nodeOf.delete(pod))
  }

  #takenClaimOf(pod: number): string | undefined {
    return this.#compiled.problem.exclusiveClaims.get(pod)?.find((claim) => this.#takenClaims.has(claim))
  }

  #notePlaced(pod: number): void {
    this.#countPlaced(pod)
    this.failures.delete(pod)
  }

  #countPlaced(pod: number): void {
    this.#placements++
    this.#placed++
    this.log.note(() => this.#placed--)
    for (const claim of this.#compiled.problem.exclusiveClaims.get(pod) ?? []) {
      this.#takenClaims.add(claim)
      this.log.note(() => this.#takenClaims.delete(claim))
    }
  }
}

function otherTermOf(shape: PodShape): PodShape | undefined {
  return shape.hasOtherTerm ? shape.relaxed() : undefined
}
