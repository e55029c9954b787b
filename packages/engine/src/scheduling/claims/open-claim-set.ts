/** The claims that a simulation has opened, and what they book: limits of their NodePools, and reservations. */
import type { Resources } from '@tenon/api'
import { type Admission, ClaimAdmission } from './claim-admission.ts'
import type { ClaimClass } from './claim-class.ts'
import { ClaimQueue, type OpenClaim } from './open-claims.ts'
import { type Ceiling, limitsOf, PoolBudget, quotaCeiling } from './pool-budget.ts'
import type { Template } from './pool-template.ts'
import { Reservations } from './reservations.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import { PodDevices } from '../devices/pod-devices.ts'
import { TrialLog } from '../pod-groups/trial-log.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import { addTo } from '../pods/resource-space.ts'
import type { SchedulerState } from '../scheduler-state.ts'
import type { PodTopology } from '../topology/pod-topology.ts'

/** A class with open claims that pods of a shape may enter. */
export interface EnterableClass {
  readonly from: ClaimClass
  readonly queue: ClaimQueue
  /** The classes of such a claim once it has the pod, one per choice of volumes. */
  readonly targets: readonly ClaimClass[]
}

export class OpenClaimSet {
  readonly admission: ClaimAdmission
  readonly budgets: ReadonlyMap<Template, PoolBudget>
  readonly devices: PodDevices
  readonly log: TrialLog
  readonly #compiled: CompiledProblem
  readonly #topology: PodTopology
  readonly #reservations: Reservations | undefined
  readonly #queues = new Map<ClaimClass, ClaimQueue>()
  /** Classes that have, or had, open claims. */
  readonly #classes: ClaimClass[] = []
  readonly #byHost = new Map<number, OpenClaim>()
  readonly #enterable: { readonly found: EnterableClass[]; seen: number }[] = []
  #list: OpenClaim[] = []
  #nextHost: number

  /** @param usageOf what the pool with this index in the problem has in use. */
  constructor(state: SchedulerState, usageOf: (pool: number) => Resources) {
    const { compiled, topology } = state
    const { problem, templates } = compiled
    const { reservations } = problem.policy
    this.#compiled = compiled
    this.#topology = topology
    const ownLimits = new Map<number, Ceiling>()
    const limitsOfPool = (pool: number, { nodePool }: Template) => {
      const limits = ownLimits.get(pool) ?? limitsOf(nodePool, usageOf(pool))
      ownLimits.set(pool, limits)
      return limits
    }
    const quotas = problem.quotas.map((quota) => ({ name: quota.name, ceiling: quotaCeiling(quota) }))
    this.budgets = new Map(
      templates.map((template) => {
        const shares = template.quotas.map(({ quota, counts }) => ({
          ...(quotas[quota] as (typeof quotas)[0]),
          counts,
        }))
        const limits = limitsOfPool(compiled.poolIndexOf(template), template)
        return [template, new PoolBudget(limits, template.rows, shares)]
      }),
    )
    this.#reservations = reservations && new Reservations(reservations, templates)
    // Answers about claims without reservations are shared by all simulations.
    this.admission =
      this.#reservations === undefined
        ? state.admission
        : new ClaimAdmission(compiled, topology, this.#reservations)
    this.devices = new PodDevices(state.devices, compiled, { admission: this.admission, topology })
    this.log = new TrialLog({
      state,
      finisher: compiled.finisher,
      queues: this.#queues,
      reservations: this.#reservations,
      areShared: this.devices.areServed,
    })
    this.#nextHost = topology.hostOf(placeholder(0))
  }

  /** In the order in which they were opened. */
  get all(): readonly OpenClaim[] {
    return this.#list
  }

  /** Host number of the next claim. */
  get nextHost(): number {
    return this.#nextHost
  }

  onHost(host: number): OpenClaim | undefined {
    return this.#byHost.get(host)
  }

  budgetOf(template: Template): PoolBudget {
    return this.budgets.get(template) as PoolBudget
  }

  /** Replaces the claims with those of another plan, once all pods are placed. */
  replace(claims: OpenClaim[]): void {
    this.#list = claims
  }

  /** Open classes that some pod of the shape may enter. */
  enterableBy(shape: PodShape): readonly EnterableClass[] {
    const known = (this.#enterable[shape.index] ??= { found: [], seen: 0 })
    for (; known.seen < this.#classes.length; known.seen++) {
      const from = this.#classes[known.seen] as ClaimClass
      const targets = samePricing(from, this.admission.targets(shape, from))
      const queue = this.#queues.get(from)
      if (targets.length > 0 && queue !== undefined) known.found.push({ from, queue, targets })
    }
    return known.found
  }

  /** The targets of a class as topology leaves them now. */
  confined({ from, targets }: EnterableClass, shape: PodShape): readonly ClaimClass[] {
    return samePricing(from, this.admission.confined(shape, targets))
  }

  /** @param arrival the number of placements before this one. */
  open(pod: number, shape: PodShape, admission: Admission, arrival: number): OpenClaim {
    const claim: OpenClaim = {
      number: this.#list.length,
      class: admission.class,
      state: admission.class.state,
      host: this.#nextHost,
      taints: admission.class.template.taints,
      isNode: false,
      amounts: new Float64Array(this.#compiled.space.size),
      pods: [],
      hostPorts: [],
      minValuesRelaxed: admission.minValuesRelaxed,
      reservations: new Set(),
      consumer: undefined,
      arrival: 0,
      slot: 0,
      cheapest: 0,
      rise: undefined,
    }
    const budget = this.budgetOf(admission.class.template)
    if (this.log.isOpen) {
      const uncharge = budget.saved()
      this.log.noteOpening(claim, () => {
        uncharge()
        this.#list.pop()
        this.#byHost.delete(claim.host)
        this.#nextHost = claim.host
      })
    }
    this.#list.push(claim)
    this.#byHost.set(claim.host, claim)
    this.#nextHost = this.#topology.hostOf(placeholder(this.#list.length))
    this.#fill(claim, pod, shape, admission, arrival)
    if (budget.isLimited) budget.charge(this.#compiled.finisher.holding(claim))
    return claim
  }

  /** Adds a pod to a claim that was opened before. */
  add(claim: OpenClaim, pod: number, shape: PodShape, admission: Admission, arrival: number): void {
    const queue = this.#queueOf(claim.class)
    this.log.noteFilling(claim, queue)
    queue.remove(claim)
    this.#fill(claim, pod, shape, admission, arrival)
  }

  #fill(claim: OpenClaim, pod: number, shape: PodShape, admission: Admission, arrival: number): void {
    if (claim.class !== admission.class) claim.cheapest = 0
    claim.class = admission.class
    claim.state = this.#compiled.classes.located(claim.class, this.#topology.domainKeys)
    claim.rise = undefined
    claim.pods.push(pod)
    claim.arrival = arrival
    addTo(claim.amounts, shape.amounts)
    if (shape.hostPorts.length > 0) claim.hostPorts = [...claim.hostPorts, ...shape.hostPorts]
    if (this.#reservations !== undefined && admission.reservations !== claim.reservations) {
      this.#reservations.exchange(claim.reservations, admission.reservations)
      claim.reservations = admission.reservations
    }
    this.devices.retain(claim)
    this.#queueOf(claim.class).add(claim)
    this.#topology.record(shape, claim)
  }

  #queueOf(of: ClaimClass): ClaimQueue {
    let queue = this.#queues.get(of)
    if (queue === undefined) {
      queue = new ClaimQueue()
      this.#queues.set(of, queue)
      this.#classes.push(of)
    }
    return queue
  }
}

function placeholder(number: number): string {
  return `hostname-placeholder-${String(number).padStart(4, '0')}`
}

/** A claim of known price never gets a class of unknown price. */
function samePricing(from: ClaimClass, targets: readonly ClaimClass[]): readonly ClaimClass[] {
  const isSame = ({ isPriced }: ClaimClass) => isPriced || !from.isPriced
  return targets.every(isSame) ? targets : targets.filter(isSame)
}
