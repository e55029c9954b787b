/** Allocates devices to nodes and open claims during simulations (devices.md 3.8, 3.15). */
import { compatible, merged, type Requirements } from '../../requirements/requirements.ts'
import type { ClaimShortage, DeviceRefusal } from '../../reasons/device-reasons.ts'
import { type Consumer, DeviceLedger, type HeldDevice } from './ledger.ts'
import {
  type DevicePool,
  type NodeAccessTerm,
  nodeAccessTerms,
  PoolReader,
  type TypeDevices,
} from './pools.ts'
import { type DeviceSupply, shortageOf } from './shortage.ts'
import {
  type ConsumerView,
  DeviceSearch,
  type DeviceSolution,
  type SoughtClaim,
  type StepBudget,
} from './search.ts'
import { extendedResourceRequests, type InstanceType, type PodSpec } from '@tenon/api'
import type { DevicesInput } from '../../input/devices.ts'
import { compileClaim, type CompiledClaim, SelectorAnswers, Suitabilities } from './requests.ts'

/** The maximum number of devices that are tried for one pod, on all nodes and claims together. */
const stepsPerPod = 200_000

/** The devices that a consumer has for the claims of a pod. */
export interface DeviceOffer {
  /** Those of the given types with which it has the devices. */
  readonly types: ReadonlySet<TypeDevices>
  /** Node requirements for access to the devices. */
  readonly requirements: Requirements
  /** By type: devices for claims that are not allocated yet. */
  readonly solutions: ReadonlyMap<TypeDevices, DeviceSolution>
  readonly sought: readonly SoughtClaim[]
  readonly consumer: Consumer
}

/** Extended resources that a pod requests and that have a DeviceClass. */
export interface ExtendedDemand {
  /** Different for each pod, and no name of a ResourceClaim. */
  readonly name: string
  readonly spec: PodSpec
  readonly resources: readonly string[]
}

/** A node or open claim that is checked for devices. */
export interface DeviceQuestion extends ConsumerView {
  readonly requirements: Requirements
  /** Whether its published devices are ignored, as the node is not initialized. */
  readonly isStarting: boolean
  readonly types: Iterable<TypeDevices>
}

const nothing: Requirements = new Map()

/** An offer that is being computed. */
interface OfferState {
  /** Requirements of the consumer and of the claims. */
  effective: Requirements
  /** Requirements of the claims. */
  asked: Requirements
  types: readonly TypeDevices[]
  readonly sought: SoughtClaim[]
  /** The claim for extended resources that types do not have themselves, by type. */
  readonly extended: ReadonlyMap<TypeDevices, SoughtClaim>
}

function require(state: OfferState, requirements: Requirements): void {
  state.effective = merged(state.effective, requirements)
  state.asked = merged(state.asked, requirements)
}

/** Allocations during simulations, which can be rolled back to a mark. */
export class DeviceAllocator {
  readonly compiled: CompiledDevices
  readonly #ledger: DeviceLedger
  readonly #budget: StepBudget = { steps: stepsPerPod }

  constructor(compiled: CompiledDevices) {
    this.compiled = compiled
    this.#ledger = new DeviceLedger(compiled.input.allocations, compiled.input.leaving)
  }

  mark(): number {
    return this.#ledger.mark()
  }

  rollback(mark: number): void {
    this.#ledger.rollback(mark)
  }

  /** Frees devices that only these pods use; call {@link mark} before. */
  leave(pods: Iterable<string>): void {
    this.#ledger.leave(pods)
  }

  /** Call it before each pod. */
  restart(): void {
    this.#budget.steps = stepsPerPod
  }

  /** The devices that the consumer has for claims and extended resources of a pod. Allocates nothing. */
  offer(
    claims: readonly string[],
    question: DeviceQuestion,
    demand?: ExtendedDemand,
  ): DeviceOffer | DeviceRefusal {
    const all = [...new Set(question.types)]
    const extended = this.#extendedClaims(demand, all)
    if ('kind' in extended) return extended
    const state: OfferState = {
      effective: question.requirements,
      asked: nothing,
      types: all,
      sought: [],
      extended,
    }
    for (const name of new Set(claims)) {
      const because = this.#stand(name, question, state)
      if (because !== undefined) return { kind: 'refused', claim: name, because }
    }
    const { types } = state
    const [one] = extended.values()
    const sought = one === undefined ? state.sought : [...state.sought, one]
    const solutions = sought.length === 0 ? undefined : this.#find(question, state)
    if (solutions?.size === 0) {
      const kind = this.#budget.steps <= 0 ? 'tooManySteps' : 'noDevices'
      return { kind: 'refused', claim: (state.sought[0] ?? one)?.name ?? '', because: { kind } }
    }
    return {
      types: new Set(solutions?.keys() ?? types),
      requirements: state.asked,
      solutions: solutions ?? new Map(),
      sought,
      consumer: question.consumer,
    }
  }

  #extendedClaims(
    demand: ExtendedDemand | undefined,
    types: readonly TypeDevices[],
  ): OfferState['extended'] | DeviceRefusal {
    const extended = new Map<TypeDevices, SoughtClaim>()
    if (demand === undefined) return extended
    const { name } = demand
    for (const type of types) {
      const claim = this.compiled.extendedClaim(demand, type)
      if (typeof claim === 'string')
        return { kind: 'refused', claim: name, because: { kind: 'problem', problem: claim } }
      if (claim.requests.length > 0) extended.set(type, { name, claim })
    }
    return extended
  }

  /**
   * Adds one claim to the offer (devices.md 3.8).
   * @returns why the consumer cannot use it.
   */
  #stand(
    name: string,
    { consumer, nodeName, mayBeUndefined }: DeviceQuestion,
    state: OfferState,
  ): DeviceRefusal['because'] | undefined {
    const grant = this.#ledger.grantOf(name)
    if (grant !== undefined) {
      const total = [...grant.requirements.values()].reduce(merged, nothing)
      const isElsewhere = grant.usesTemplates && grant.consumer !== consumer
      if (isElsewhere || !compatible(state.effective, total, mayBeUndefined)) return { kind: 'elsewhere' }
      if (grant.consumer === consumer)
        state.types = state.types.filter((type) => grant.requirements.has(type))
      require(state, total)
      return undefined
    }
    if (this.#ledger.isSettled(name)) {
      const terms = this.compiled.allocatedAt(name)
      const term = terms?.find(
        ({ requirements, names }) =>
          (names === undefined || (nodeName !== undefined && names.has(nodeName))) &&
          compatible(state.effective, requirements, mayBeUndefined),
      )
      if (terms !== undefined && term === undefined) return { kind: 'elsewhere' }
      require(state, term?.requirements ?? nothing)
      return undefined
    }
    const claim = this.compiled.claim(name)
    if (typeof claim === 'string') return { kind: 'problem', problem: claim }
    state.sought.push({ name, claim })
    return undefined
  }

  /** Finds devices for each type. Requirements of one type also apply to the types after it. */
  #find(question: DeviceQuestion, state: OfferState): ReadonlyMap<TypeDevices, DeviceSolution> {
    const { nodeName, isStarting } = question
    const published = this.compiled.published(isStarting ? undefined : nodeName)
    const context = { ledger: this.#ledger, suitabilities: this.compiled.suitabilities, budget: this.#budget }
    const solutions = new Map<TypeDevices, DeviceSolution>()
    for (const type of state.types) {
      const pools = type.pools.length === 0 ? published : [...published, ...type.pools]
      const extended = state.extended.get(type)
      const solution = new DeviceSearch(
        context,
        question,
        { type, pools, requirements: state.effective },
        extended === undefined ? state.sought : [...state.sought, extended],
      ).run()
      if (solution === undefined) continue
      solutions.set(type, solution)
      for (const requirements of solution.requirements.values()) require(state, requirements)
    }
    return solutions
  }

  /** What is missing for a refused claim; undefined for one that cannot be read. */
  shortage(
    claim: CompiledClaim | string,
    supply: Pick<DeviceSupply, 'asked' | 'types'>,
  ): ClaimShortage | undefined {
    if (typeof claim === 'string') return undefined
    return shortageOf(
      claim,
      { ...supply, published: this.compiled.allPublished, common: this.compiled.published(undefined) },
      this.compiled.suitabilities,
    )
  }

  /** Allocates the devices of an offer, for those types that the consumer may still become. */
  take({ solutions, sought, consumer }: DeviceOffer, types: ReadonlySet<TypeDevices>): void {
    const kept = [...solutions].filter(([type]) => types.has(type))
    for (const { name } of sought) {
      const holds = kept.flatMap(([, found]) => found.holds.filter(({ claim }) => claim === name))
      this.#ledger.grant(
        name,
        {
          consumer,
          requirements: new Map(kept.map(([type, found]) => [type, found.requirements.get(name) ?? nothing])),
          usesTemplates: holds.some(({ device }) => device.pool.isTemplate),
        },
        holds,
      )
    }
  }

  /** Frees devices of types that the consumer can no longer become. */
  retain(consumer: Consumer, types: ReadonlySet<TypeDevices>): void {
    this.#ledger.retain(consumer, types)
  }

  heldBy(consumer: Consumer): readonly HeldDevice[] {
    return [...this.#ledger.holdsOf(consumer)]
  }

  /** Drivers that must publish devices on the consumer's node, in alphabetical order. */
  driversOf(consumer: Consumer): readonly string[] {
    const drivers = new Set<string>()
    for (const { device } of this.#ledger.holdsOf(consumer))
      if (device.pool.isTemplate) drivers.add(device.pool.driver)
    return [...drivers].toSorted()
  }
}

/** The devices and ResourceClaims of a problem, compiled once for all simulations. */
export class CompiledDevices {
  readonly input: DevicesInput
  readonly suitabilities = new Suitabilities(new SelectorAnswers())
  readonly #reader: PoolReader
  readonly #pinned = new Map<string, DevicePool[]>()
  readonly #others: readonly DevicePool[]
  /** All published pools, whichever nodes they belong to. */
  readonly allPublished: readonly DevicePool[]
  readonly #classes: ReadonlyMap<string, DevicesInput['classes'][number]>
  readonly #claims = new Map<string, CompiledClaim | string>()
  readonly #bySpec = new Map<string, CompiledClaim | string>()
  readonly #none: TypeDevices = { pools: [] }
  /** By type, and by the names of the resources that it has itself. */
  readonly #counting = new WeakMap<TypeDevices, Map<string, TypeDevices>>()
  readonly #extended = new WeakMap<PodSpec, Map<string, CompiledClaim | string>>()

  constructor(input: DevicesInput) {
    this.input = input
    this.#reader = new PoolReader(input.taintRules ?? [])
    this.#classes = new Map(input.classes.map((each) => [each.metadata.name, each]))
    const others: DevicePool[] = []
    this.allPublished = this.#reader.published(input.slices)
    for (const pool of this.allPublished) {
      const places = pool.devices.map(({ place }) => place)
      const names = new Set(places.flatMap((place) => (place.kind === 'node' ? [place.name] : [])))
      // A pool without usable devices belongs to the nodes that its slices name.
      for (const name of names.size === 0 ? this.#namesOf(pool) : names) {
        const pools = this.#pinned.get(name) ?? []
        pools.push(pool)
        this.#pinned.set(name, pools)
      }
      if (places.some(({ kind }) => kind !== 'node')) others.push(pool)
      else if (places.length === 0 && this.#namesOf(pool).size === 0) others.push(pool)
    }
    this.#others = others
  }

  #namesOf({ driver, name }: DevicePool): ReadonlySet<string> {
    return new Set(
      this.input.slices.flatMap(({ spec }) =>
        spec.driver === driver && spec.pool.name === name && spec.nodeName !== undefined
          ? [spec.nodeName]
          : [],
      ),
    )
  }

  /** Published pools that a node may use; undefined stands for a new node. */
  published(nodeName: string | undefined): readonly DevicePool[] {
    const pinned = nodeName === undefined ? undefined : this.#pinned.get(nodeName)
    if (pinned === undefined) return this.#others
    return this.#others.length === 0 ? pinned : [...new Set([...pinned, ...this.#others])]
  }

  /** The devices of nodes of a type. */
  ofType(type: InstanceType | undefined): TypeDevices {
    return (type?.resourceSliceTemplates ?? []).length === 0 || type === undefined
      ? this.#none
      : this.#reader.ofType(type)
  }

  get none(): TypeDevices {
    return this.#none
  }

  /** The compiled claim, or what is wrong with it. */
  claim(name: string): CompiledClaim | string {
    let claim = this.#claims.get(name)
    if (claim === undefined) {
      const source = this.input.claims.get(name)
      if (source === undefined) claim = 'it does not exist'
      else {
        const key = JSON.stringify(source.spec)
        claim = this.#bySpec.get(key) ?? compileClaim(source.spec, this.#classes)
        this.#bySpec.set(key, claim)
      }
      this.#claims.set(name, claim)
    }
    return claim
  }

  /** The same devices on nodes that have these extended resources themselves. */
  counting(type: TypeDevices, resources: readonly string[]): TypeDevices {
    if (resources.length === 0) return type
    const known = this.#counting.get(type) ?? new Map<string, TypeDevices>()
    this.#counting.set(type, known)
    const key = resources.join(' ')
    const counting = known.get(key) ?? { pools: type.pools, counted: new Set(resources) }
    known.set(key, counting)
    return counting
  }

  /** The claim for those of a pod's extended resources that nodes of the type do not have, or what is wrong with it. */
  extendedClaim(
    { spec, resources }: Omit<ExtendedDemand, 'name'>,
    type: TypeDevices,
  ): CompiledClaim | string {
    const served = resources.filter((name) => type.counted?.has(name) !== true)
    const known = this.#extended.get(spec) ?? new Map<string, CompiledClaim | string>()
    this.#extended.set(spec, known)
    const key = served.join(' ')
    let claim = known.get(key)
    if (claim === undefined) {
      const classes = this.input.extendedResources ?? new Map<string, string>()
      const { requests } = extendedResourceRequests(
        spec,
        new Map(served.map((name) => [name, classes.get(name) ?? ''])),
      )
      claim = compileClaim({ devices: { requests } }, this.#classes)
      known.set(key, claim)
    }
    return claim
  }

  /**
   * Node terms of an allocated claim, one of which a node must meet to use its devices; undefined if every node can.
   */
  allocatedAt(name: string): readonly NodeAccessTerm[] | undefined {
    const selector = this.input.claims.get(name)?.status?.allocation?.nodeSelector
    return selector === undefined ? undefined : nodeAccessTerms(selector)
  }
}
