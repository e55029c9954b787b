/** The solve loop: where each pod goes, and which claims to create for it (scheduling.md 6). */
import { labels, normalizedLabel, type Resources } from '@tenon/api'
import type { PodReason } from '../reasons/reasons.ts'
import { RequirementStates } from '../requirements/states.ts'
import { type Problem, problemText } from '../snapshot/problem.ts'
import type { MalformedObject, PoolWithoutTypes, SchedulingControl } from '../snapshot/result.ts'
import { type Admission, ClaimAdmission } from './claim-admission.ts'
import { type ClaimClass, ClaimClasses } from './claim-class.ts'
import { explain } from './explain.ts'
import { ClaimFinisher, type FinishedClaim } from './finished-claims.ts'
import type { NodeFill } from './node-fill.ts'
import { NodeQueue } from './node-queue.ts'
import { ClaimQueue, isBefore, type OpenClaim } from './open-claims.ts'
import { type PodShape, PodShapes } from './pod-shape.ts'
import {
  type CompiledDaemon,
  compileDaemon,
  type CompiledPool,
  compilePool,
  compileTemplate,
  poolOrder,
  type Template,
  type TypeCache,
} from './pool-template.ts'
import { regrouped } from './improvement/regroup.ts'
import { addTo, ResourceSpace } from './resource-space.ts'
import { podRequests } from './pod-resources.ts'
import { Reservations } from './reservations.ts'
import { DomainUniverse } from './topology/domains.ts'
import { PodTopology } from './topology/pod-topology.ts'

/** A decision by indexes of the problem. Plain data. */
export interface Solution {
  readonly claims: readonly FinishedClaim[]
  /** Per pod: the node it goes to, or -1. */
  readonly nodeOf: Int32Array
  /** Per pod that finds no place: its reason. */
  readonly failures: ReadonlyMap<number, PodReason>
  readonly undecided: readonly number[]
  readonly poolsWithoutTypes: readonly PoolWithoutTypes[]
  readonly malformed: readonly MalformedObject[]
  readonly pricePerHour: number
  readonly firstFitPricePerHour: number
}

/** Pods placed between two questions whether to stop. */
const podsPerCheck = 64

/** Decides for every pod of the problem. */
export function solve(problem: Problem, control: SchedulingControl): Solution {
  const solver = new Solver(problem)
  solver.run(control)
  solver.improve(control)
  return solver.solution()
}

/** How an open claim's class bears on a shape. */
interface Reach {
  readonly queue: ClaimQueue
  readonly targets: readonly ClaimClass[]
}

interface ShapeMemory {
  readonly reach: Reach[]
  /** Classes looked at so far. */
  seen: number
  /** Placements made when the shape last found no place; it finds none before there are more. */
  failedAt: number
}

class Solver {
  readonly #problem: Problem
  readonly #states = new RequirementStates()
  readonly #space = new ResourceSpace()
  readonly #malformed: MalformedObject[] = []
  readonly #poolsWithoutTypes: PoolWithoutTypes[] = []
  readonly #templates: readonly Template[]
  readonly #poolIndex = new Map<Template, number>()
  /** Per shape what its pods ask for, or what is wrong with that. */
  readonly #requests: readonly (Resources | string)[]
  readonly #shapes: readonly (PodShape | undefined)[]
  readonly #nodes: NodeQueue
  readonly #topology: PodTopology
  readonly #classes: ClaimClasses
  readonly #admission: ClaimAdmission
  readonly #finisher: ClaimFinisher
  readonly #reservations: Reservations | undefined
  #claims: OpenClaim[] = []
  #firstFitPrice = 0
  readonly #claimOfHost = new Map<number, OpenClaim>()
  /** Classes that have, or had, open claims. */
  readonly #openClasses: ClaimClass[] = []
  readonly #queues = new Map<ClaimClass, ClaimQueue>()
  readonly #memory: (ShapeMemory | undefined)[] = []
  readonly #failures = new Map<number, PodReason | PodShape>()
  readonly #nodeOf: Int32Array
  readonly #nodeIndex = new Map<NodeFill, number>()
  #undecided: readonly number[] = []
  #placements = 0
  #newHost: number

  constructor(problem: Problem) {
    this.#problem = problem
    const { policy } = problem
    this.#requests = problem.shapes.map(({ spec, status }) => {
      try {
        return podRequests(spec, status)
      } catch (error) {
        return problemText(error)
      }
    })
    const daemons = this.#compileDaemons()
    const pools = this.#compilePools()
    this.#learnResources(pools, daemons)
    const shapes = new PodShapes(this.#states, this.#space, pools.some(hasSoftTaint))
    this.#templates = this.#compileTemplates(pools, daemons)
    this.#shapes = this.#compileShapes(shapes)
    this.#topology = new PodTopology(problem, this.#states, new DomainUniverse(pools))
    this.#topology.observe(this.#shapes.filter((shape) => shape !== undefined))
    this.#nodes = new NodeQueue(problem.nodes, {
      states: this.#states,
      space: this.#space,
      daemons,
      topology: this.#topology,
      keys: this.#labelKeys(daemons),
    })
    const index = new Map(problem.nodes.map((node, i) => [node, i]))
    for (const node of this.#nodes.all) this.#nodeIndex.set(node, index.get(node.input) ?? -1)
    this.#reservations =
      policy.reservations === undefined ? undefined : new Reservations(policy.reservations, this.#templates)
    this.#classes = new ClaimClasses(this.#states, policy)
    this.#admission = new ClaimAdmission(this.#classes, this.#topology, policy, this.#reservations)
    this.#finisher = new ClaimFinisher(this.#states, this.#classes, this.#space, policy)
    this.#nodeOf = new Int32Array(problem.shapeOf.length).fill(-1)
    this.#newHost = this.#topology.hostOf(placeholder(0))
  }

  /** Tries every pod; those that fail are tried again for as long as others still find places. */
  run(control: SchedulingControl): void {
    let queue: readonly number[] = this.#order()
    while (queue.length > 0) {
      const failed: number[] = []
      for (const [done, pod] of queue.entries()) {
        if (done % podsPerCheck === podsPerCheck - 1 && control.shouldStop()) {
          this.#undecided = queue.slice(done).filter((each) => !this.#failures.has(each))
          return
        }
        if (!this.#place(pod, this.#shapeOf(pod))) failed.push(pod)
      }
      if (failed.length === queue.length) return
      queue = failed
    }
  }

  /** Looks for a cheaper set of new claims, if the policy asks for one. */
  improve({ shouldStop }: SchedulingControl): void {
    this.#firstFitPrice = this.#claims.reduce((sum, claim) => sum + this.#finisher.priceOf(claim), 0)
    const { improvement } = this.#problem.policy
    if (improvement === undefined || this.#undecided.length > 0) return
    this.#claims = regrouped(this.#claims, {
      shapeOf: (pod) => this.#shapeOf(pod),
      topology: this.#topology,
      finisher: this.#finisher,
      restricted: (of, rows) => this.#classes.restricted(of, rows),
      improvement,
      shouldStop,
    })
  }

  solution(): Solution {
    const claims: FinishedClaim[] = []
    const failures = this.#finalFailures()
    for (const claim of this.#claims) {
      const { template } = claim.class
      const finished = this.#finisher.finish(claim, this.#poolIndex.get(template) ?? -1)
      if (!('kind' in finished)) claims.push(finished)
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
    const pricePerHour = claims.reduce((sum, claim) => sum + claim.pricePerHour, 0)
    const { uids } = this.#problem
    return {
      claims: claims.toSorted(
        (a, b) => compare(a.nodePool, b.nodePool) || compare(uids[a.pods[0] ?? -1], uids[b.pods[0] ?? -1]),
      ),
      nodeOf: this.#nodeOf,
      failures,
      undecided: this.#undecided,
      poolsWithoutTypes: this.#poolsWithoutTypes,
      malformed: this.#malformed,
      pricePerHour,
      firstFitPricePerHour: this.#firstFitPrice,
    }
  }

  /** In a disruption, only pods that must move anyway may count on a node that is still starting. */
  #refuseUninitialized(failures: Map<number, PodReason>): void {
    if (this.#problem.policy.simulation !== 'disruption') return
    for (const node of this.#nodes.all) {
      if (node.input.initialized) continue
      for (const pod of node.pods) {
        if (this.#shapeOf(pod).origin === 'deleting') continue
        this.#nodeOf[pod] = -1
        failures.set(pod, { kind: 'uninitializedNode', node: node.input.name })
      }
    }
  }

  #finalFailures(): Map<number, PodReason> {
    const reasons = new Map<PodShape, PodReason>()
    const failures = new Map<number, PodReason>()
    for (const [pod, problem] of this.#problem.malformed) failures.set(pod, { kind: 'malformed', problem })
    for (const [pod, failure] of this.#failures) {
      if ('kind' in failure) failures.set(pod, failure)
      else {
        let reason = reasons.get(failure)
        if (reason === undefined) {
          reason = this.#explain(failure)
          reasons.set(failure, reason)
        }
        failures.set(pod, reason)
      }
    }
    return failures
  }

  #explain(shape: PodShape): PodReason {
    if (shape.usesResourceClaims) return { kind: 'resourceClaims' }
    if (this.#templates.length === 0)
      return this.#problem.pools.length === 0 ? { kind: 'noPools' } : { kind: 'noTypesInPools' }
    let last = shape
    for (let next = shape.relaxed(); next !== undefined; next = next.relaxed()) last = next
    return explain(last, this.#templates, this.#newHost, {
      states: this.#states,
      classes: this.#classes,
      admission: this.#admission,
      topology: this.#topology,
      space: this.#space,
      policy: this.#problem.policy,
    })
  }

  #shapeOf(pod: number): PodShape {
    return this.#shapes[this.#problem.shapeOf[pod] as number] as PodShape
  }

  #place(pod: number, wanted: PodShape): boolean {
    const memory = this.#memoryOf(wanted)
    const volumes = this.#problem.volumeClaims.get(pod)
    if (memory.failedAt !== this.#placements || volumes !== undefined) {
      const outcome = wanted.usesResourceClaims ? 'refused' : this.#tryShapes(pod, wanted)
      if (outcome === 'placed') {
        this.#placements++
        this.#failures.delete(pod)
        return true
      }
      if (typeof outcome === 'object') {
        this.#failures.set(pod, outcome)
        return false
      }
      memory.failedAt = this.#placements
    }
    this.#failures.set(pod, wanted)
    return false
  }

  #tryShapes(pod: number, wanted: PodShape): 'placed' | 'refused' | PodReason {
    const volumes = this.#problem.volumeClaims.get(pod)
    for (let shape: PodShape | undefined = wanted; shape !== undefined; shape = shape.relaxed()) {
      const node = this.#nodes.first(shape, volumes)
      if (node !== undefined) {
        this.#nodes.take(node, pod, shape, volumes)
        this.#nodeOf[pod] = this.#nodeIndex.get(node) ?? -1
        return 'placed'
      }
      if (this.#onOpenClaim(pod, shape)) return 'placed'
      const outcome = this.#onNewClaim(pod, shape)
      if (outcome !== 'refused') return outcome
    }
    return 'refused'
  }

  #memoryOf(shape: PodShape): ShapeMemory {
    return (this.#memory[shape.index] ??= { reach: [], seen: 0, failedAt: -1 })
  }

  /** Open classes that some pod of the shape may enter. */
  #reachOf(shape: PodShape): readonly Reach[] {
    const memory = this.#memoryOf(shape)
    for (; memory.seen < this.#openClasses.length; memory.seen++) {
      const from = this.#openClasses[memory.seen] as ClaimClass
      const targets = this.#admission.targets(shape, from)
      const queue = this.#queues.get(from)
      if (targets.length > 0 && queue !== undefined) memory.reach.push({ queue, targets })
    }
    return memory.reach
  }

  #onOpenClaim(pod: number, shape: PodShape): boolean {
    const reach = this.#reachOf(shape)
    if (reach.length === 0) return false
    const hosts = this.#topology.boundHosts(shape)
    if (hosts !== undefined) return this.#onBoundHost(pod, shape, hosts)
    let best: OpenClaim | undefined
    let bestConfined: readonly ClaimClass[] = []
    for (const { queue, targets } of reach) {
      if (queue.isEmpty) continue
      const confined = this.#admission.confined(shape, targets)
      if (confined.length === 0) continue
      const found = queue.first(shape.index, best, (claim) =>
        this.#admission.answer(claim, shape, targets, confined),
      )
      if (found === undefined) continue
      best = found
      bestConfined = confined
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  /** An affinity names the nodes: only claims among them are asked. */
  #onBoundHost(pod: number, shape: PodShape, hosts: readonly number[]): boolean {
    let best: OpenClaim | undefined
    let bestConfined: readonly ClaimClass[] = []
    for (const host of hosts) {
      const claim = this.#claimOfHost.get(host)
      if (claim === undefined || (best !== undefined && isBefore(best, claim))) continue
      const targets = this.#admission.targets(shape, claim.class)
      const confined = this.#admission.confined(shape, targets)
      if (this.#admission.answer(claim, shape, targets, confined) !== 'accepts') continue
      best = claim
      bestConfined = confined
    }
    return best !== undefined && this.#enter(best, pod, shape, bestConfined)
  }

  #enter(claim: OpenClaim, pod: number, shape: PodShape, confined: readonly ClaimClass[]): boolean {
    const admission = this.#admission.admit(claim, shape, confined)
    if (admission === undefined) return false
    this.#queueOf(claim.class).remove(claim)
    this.#fill(claim, pod, shape, admission)
    return true
  }

  #onNewClaim(pod: number, shape: PodShape): 'placed' | 'refused' | PodReason {
    for (const template of this.#templates) {
      if (template.budget.nodesExhausted || template.budget.affordable().length === 0) continue
      const opened = this.#classes.opened(template)
      const targets = this.#admission.targets(shape, opened)
      if (targets.length === 0 || !this.#topology.allowsHost(shape, this.#newHost)) continue
      const admission = this.#admission.open(shape, this.#admission.confined(shape, targets))
      if (admission === undefined) continue
      if ('kind' in admission) return { kind: 'reservationDeferred', variant: admission.variant }
      this.#open(pod, shape, admission)
      return 'placed'
    }
    return 'refused'
  }

  #open(pod: number, shape: PodShape, admission: Admission): void {
    const claim: OpenClaim = {
      number: this.#claims.length,
      class: admission.class,
      state: admission.class.state,
      host: this.#newHost,
      taints: admission.class.template.taints,
      amounts: new Float64Array(this.#space.size),
      pods: [],
      hostPorts: [],
      minValuesRelaxed: admission.minValuesRelaxed,
      reservations: new Set(),
      arrival: 0,
      slot: 0,
    }
    this.#claims.push(claim)
    this.#claimOfHost.set(claim.host, claim)
    this.#newHost = this.#topology.hostOf(placeholder(this.#claims.length))
    this.#fill(claim, pod, shape, admission)
    const { budget } = admission.class.template
    if (budget.isLimited) budget.charge(this.#finisher.holding(claim))
  }

  #fill(claim: OpenClaim, pod: number, shape: PodShape, admission: Admission): void {
    claim.class = admission.class
    claim.state = admission.class.state
    claim.pods.push(pod)
    claim.arrival = this.#placements
    addTo(claim.amounts, shape.amounts)
    if (shape.hostPorts.length > 0) claim.hostPorts = [...claim.hostPorts, ...shape.hostPorts]
    if (this.#reservations !== undefined && admission.reservations !== claim.reservations) {
      this.#reservations.exchange(claim.reservations, admission.reservations)
      claim.reservations = admission.reservations
    }
    this.#queueOf(claim.class).add(claim)
    this.#topology.record(shape, claim)
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

  /** Large pods first; then the oldest, then by UID (scheduling.md 6.1). */
  #order(): number[] {
    const { shapeOf, created, uids } = this.#problem
    const cpu = this.#space.vector({ cpu: 1 }).indexOf(1)
    const memory = this.#space.vector({ memory: 1 }).indexOf(1)
    const amount = (pod: number, resource: number) =>
      resource < 0 ? 0 : (this.#shapeOf(pod).amounts[resource] as number)
    const pods: number[] = []
    for (let pod = 0; pod < shapeOf.length; pod++)
      if ((shapeOf[pod] as number) >= 0 && this.#shapes[shapeOf[pod] as number] !== undefined) pods.push(pod)
    return pods.sort(
      (a, b) =>
        amount(b, cpu) - amount(a, cpu) ||
        amount(b, memory) - amount(a, memory) ||
        compare(created[a], created[b]) ||
        compare(uids[a], uids[b]),
    )
  }

  #compileDaemons(): readonly CompiledDaemon[] {
    return this.#problem.daemons.flatMap((daemon) => {
      try {
        return [compileDaemon(daemon)]
      } catch (error) {
        this.#malformed.push({ kind: 'DaemonSet', name: daemon.name, problem: problemText(error) })
        return []
      }
    })
  }

  #compilePools(): readonly CompiledPool[] {
    const cache: TypeCache = new Map()
    const pools: CompiledPool[] = []
    for (const input of this.#problem.pools) {
      try {
        pools.push(
          compilePool(input, cache, ({ name }, problem) =>
            this.#malformed.push({ kind: 'InstanceType', name, problem: problemText(problem) }),
          ),
        )
      } catch (error) {
        const name = input.nodePool.metadata?.name ?? ''
        this.#malformed.push({ kind: 'NodePool', name, problem: problemText(error) })
      }
    }
    return pools.toSorted((a, b) => poolOrder(a.input.nodePool, b.input.nodePool))
  }

  #compileTemplates(pools: readonly CompiledPool[], daemons: readonly CompiledDaemon[]): readonly Template[] {
    const { policy } = this.#problem
    const context = { states: this.#states, space: this.#space, daemons, policy }
    const templates: Template[] = []
    for (const pool of pools) {
      const template = compileTemplate(pool, templates.length, context)
      if ('kind' in template)
        this.#poolsWithoutTypes.push({
          nodePool: pool.input.nodePool.metadata.name,
          becauseOfMinValues: template.becauseOfMinValues,
        })
      else {
        this.#poolIndex.set(template, this.#problem.pools.indexOf(pool.input))
        templates.push(template)
      }
    }
    return templates
  }

  #compileShapes(shapes: PodShapes): readonly (PodShape | undefined)[] {
    const { shapes: sources, shapeOf } = this.#problem
    const problems = new Map<number, string>()
    const made = sources.map((source, index) => {
      const requests = this.#requests[index]
      try {
        if (typeof requests === 'object') return shapes.shapeOf(source, requests)
        problems.set(index, requests ?? '')
      } catch (error) {
        problems.set(index, problemText(error))
      }
      return undefined
    })
    if (problems.size === 0) return made
    for (const [pod, shape] of shapeOf.entries()) {
      const problem = problems.get(shape)
      if (problem !== undefined) this.#failures.set(pod, { kind: 'malformed', problem })
    }
    return made
  }

  /** Makes every resource known before vectors are made. */
  #learnResources(pools: readonly CompiledPool[], daemons: readonly CompiledDaemon[]): void {
    for (const { types } of pools)
      for (const { type, groups } of types) {
        this.#space.add(type.capacity)
        for (const { allocatable } of groups) this.#space.add(allocatable)
      }
    for (const { requests } of daemons) this.#space.add(requests)
    for (const { available, daemonRequests } of this.#problem.nodes) {
      this.#space.add(available)
      this.#space.add(daemonRequests)
    }
    for (const requests of this.#requests) if (typeof requests === 'object') this.#space.add(requests)
  }

  /** Label keys that decide anything about existing nodes. */
  #labelKeys(daemons: readonly CompiledDaemon[]): ReadonlySet<string> {
    const keys = new Set<string>()
    for (const { alternatives } of daemons)
      for (const wanted of alternatives) for (const key of wanted.keys()) keys.add(key)
    for (const shape of this.#shapes) if (shape !== undefined) collectKeys(shape, keys)
    for (const { volumeAlternatives } of this.#problem.shapes)
      for (const { key } of volumeAlternatives.flat()) keys.add(normalizedLabel(key))
    for (const { spec } of this.#problem.boundShapes)
      for (const term of spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ??
        [])
        keys.add(normalizedLabel(term.topologyKey))
    keys.delete(labels.hostname)
    return keys
  }
}

function collectKeys({ spec }: PodShape, keys: Set<string>): void {
  const add = (key: string) => keys.add(normalizedLabel(key))
  for (const key in spec.nodeSelector) add(key)
  const { nodeAffinity, podAffinity, podAntiAffinity } = spec.affinity ?? {}
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const preferred = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  for (const term of [...required, ...preferred.map((each) => each.preference)])
    for (const { key } of term.matchExpressions ?? []) add(key)
  for (const { topologyKey } of spec.topologySpreadConstraints ?? []) add(topologyKey)
  for (const kind of [podAffinity, podAntiAffinity]) {
    for (const { topologyKey } of kind?.requiredDuringSchedulingIgnoredDuringExecution ?? []) add(topologyKey)
    for (const { podAffinityTerm } of kind?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      add(podAffinityTerm.topologyKey)
  }
}

function hasSoftTaint({ taints }: CompiledPool): boolean {
  return taints.some((taint) => taint.effect === 'PreferNoSchedule')
}

function placeholder(number: number): string {
  return `hostname-placeholder-${String(number).padStart(4, '0')}`
}

function compare(a: string | undefined, b: string | undefined): number {
  return (a ?? '') < (b ?? '') ? -1 : (a ?? '') > (b ?? '') ? 1 : 0
}
