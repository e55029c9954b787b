/**
 * Finds devices for claims on one consumer as one type. Depth first; the first complete solution wins (devices.md
 * 3.11).
 */
import type { DeviceAmount, DeviceAmounts } from '@tenon/api'
import { compatible, merged, type Requirements } from '../../requirements/requirements.ts'
import { addAmounts, subtractAmounts } from './amounts.ts'
import { ConstraintState } from './constraints.ts'
import type { CompiledDevice, DevicePool } from './pools.ts'
import { counterUse, type DeviceLedger, type HeldDevice, sharedUse, type Consumer } from './ledger.ts'
import type { TypeDevices } from './pools.ts'
import {
  type CompiledClaim,
  concerns,
  type CompiledRequest,
  mostDevicesPerClaim,
  type RequestAlternative,
  type Suitabilities,
} from './requests.ts'

/** A claim without devices. */
export interface SoughtClaim {
  readonly name: string
  readonly claim: CompiledClaim
}

/** The consumer as the search sees it. */
export interface ConsumerView {
  readonly consumer: Consumer
  /** Undefined for a new node. */
  readonly nodeName: string | undefined
  /** Label keys that the consumer need not define. */
  readonly mayBeUndefined: ReadonlySet<string>
}

/** The number of devices that may still be tried. At 0 a search ends without a result. */
export interface StepBudget {
  steps: number
}

/** The devices that a search may choose. */
export interface SearchRange {
  readonly type: TypeDevices
  /** In the order in which they are searched. */
  readonly pools: readonly DevicePool[]
  /** Requirements that the consumer already has. */
  readonly requirements: Requirements
}

/** Devices for all claims, and their requirements on the node. */
export interface DeviceSolution {
  readonly holds: readonly HeldDevice[]
  /** By claim: node requirements for access to its devices. */
  readonly requirements: ReadonlyMap<string, Requirements>
}

export interface SearchContext {
  readonly ledger: DeviceLedger
  readonly suitabilities: Suitabilities
  readonly budget: StepBudget
}

const nothing: Requirements = new Map()

export class DeviceSearch {
  readonly #context: SearchContext
  readonly #view: ConsumerView
  readonly #type: TypeDevices
  readonly #pools: readonly DevicePool[]
  readonly #claims: readonly SoughtClaim[]
  readonly #holds: HeldDevice[] = []
  readonly #taken = new Set<CompiledDevice>()
  readonly #sharedUse = new Map<CompiledDevice, Map<string, DeviceAmount>>()
  readonly #counterUse = new Map<DevicePool, Map<string, DeviceAmount>>()
  readonly #charged = new Map<CompiledDevice, number>()
  readonly #matching = new Map<RequestAlternative, readonly CompiledDevice[] | undefined>()
  readonly #requirements: Requirements[]
  readonly #ofClaim = new Map<string, Requirements>()

  constructor(
    context: SearchContext,
    view: ConsumerView,
    { type, pools, requirements }: SearchRange,
    claims: readonly SoughtClaim[],
  ) {
    this.#context = context
    this.#view = view
    this.#type = type
    this.#pools = pools
    this.#claims = claims
    this.#requirements = [requirements]
  }

  /** Undefined if there are no such devices, or the step budget was used up. */
  run(): DeviceSolution | undefined {
    return this.#claim(0) ? { holds: this.#holds, requirements: this.#ofClaim } : undefined
  }

  get #current(): Requirements {
    return this.#requirements.at(-1) ?? nothing
  }

  #claim(index: number): boolean {
    const sought = this.#claims[index]
    if (sought === undefined) return true
    const constraints = sought.claim.constraints.map((rule) => new ConstraintState(rule))
    this.#ofClaim.set(sought.name, nothing)
    return this.#request({ sought, constraints, first: this.#holds.length, index }, 0)
  }

  #request(of: ClaimSearch, at: number): boolean {
    const request = of.sought.claim.requests[at]
    if (request === undefined) return this.#claim(of.index + 1)
    for (const way of request.ways) {
      const devices = this.#devicesFor(way)
      if (devices === undefined) continue
      const count = way.count ?? devices.length
      if (count === 0 || count > devices.length * (way.count === undefined ? 1 : mostDevicesPerClaim))
        continue
      if (this.#holds.length - of.first + count > mostDevicesPerClaim) continue
      if (this.#slot({ of, at, request, way, devices, count }, 0, 0)) return true
    }
    return false
  }

  #slot(slots: Slots, slot: number, start: number): boolean {
    const { of, at, way, devices, count } = slots
    if (slot === count) return this.#request(of, at + 1)
    if (way.count === undefined) {
      const device = devices[slot] as CompiledDevice
      if (!this.#take(device, slots)) return false
      if (this.#slot(slots, slot + 1, 0)) return true
      this.#giveBack(slots)
      return false
    }
    const failed = new Set<number>()
    for (let index = start; index < devices.length; index++) {
      const device = devices[index] as CompiledDevice
      // If a device leads to no solution, an interchangeable one does not either.
      if (failed.has(device.equivalenceClass) || !this.#take(device, slots)) continue
      if (this.#slot(slots, slot + 1, device.isShared || way.adminAccess ? index : index + 1)) return true
      this.#giveBack(slots)
      if (!device.isShared) failed.add(device.equivalenceClass)
      if (this.#context.budget.steps <= 0) return false
    }
    return false
  }

  /**
   * Devices that meet the alternative, in use or not; undefined if it asks for all devices and they are not all known.
   */
  #devicesFor(way: RequestAlternative): readonly CompiledDevice[] | undefined {
    if (this.#matching.has(way)) return this.#matching.get(way)
    const devices = this.#findDevices(way)
    this.#matching.set(way, devices)
    return devices
  }

  #findDevices(way: RequestAlternative): readonly CompiledDevice[] | undefined {
    const found: CompiledDevice[] = []
    const wantsAll = way.count === undefined
    for (const pool of this.#pools) {
      if (pool.problem !== undefined || !pool.isComplete) {
        if (wantsAll) return undefined
        continue
      }
      for (const device of pool.devices) {
        if (!this.#reaches(device, this.#requirements[0] ?? nothing)) continue
        const suitability = this.#context.suitabilities.of(way, device)
        if (suitability.kind === 'failed' && wantsAll) return undefined
        if (suitability.kind === 'suits') found.push(device)
      }
    }
    return found
  }

  #reaches({ place }: CompiledDevice, requirements: Requirements): Requirements | undefined {
    if (place.kind === 'everywhere') return nothing
    const { nodeName, mayBeUndefined } = this.#view
    if (place.kind === 'node') return place.name === nodeName ? nothing : undefined
    return place.terms.find(
      ({ requirements: wanted, names }) =>
        (names === undefined || (nodeName !== undefined && names.has(nodeName))) &&
        compatible(requirements, wanted, mayBeUndefined),
    )?.requirements
  }

  /** Chooses a device, if it is free and meets the constraints together with those chosen before. */
  #take(device: CompiledDevice, { of, request, way }: Slots): boolean {
    if (this.#context.budget.steps <= 0) return false
    this.#context.budget.steps--
    const suitability = this.#context.suitabilities.of(way, device)
    if (suitability.kind !== 'suits') return false
    const { consumed } = suitability
    if (!way.adminAccess && !this.#isFree(device, consumed)) return false
    const place = this.#reaches(device, this.#current)
    if (place === undefined) return false
    const rules = of.constraints.filter(({ rule }) => concerns(rule, request, way))
    for (const [index, rule] of rules.entries()) {
      if (rule.add(device)) continue
      for (const added of rules.slice(0, index)) added.remove()
      return false
    }
    this.#requirements.push(merged(this.#current, place))
    const before = this.#ofClaim.get(of.sought.name) ?? nothing
    of.before ??= []
    of.before.push(before)
    this.#ofClaim.set(of.sought.name, merged(before, place))
    this.#holds.push({
      consumer: this.#view.consumer,
      type: this.#type,
      device,
      consumed: device.isShared ? consumed : none,
      claim: of.sought.name,
      request: way.name,
      adminAccess: way.adminAccess,
    })
    if (!way.adminAccess) this.#charge(device, consumed)
    return true
  }

  #giveBack({ of, request, way }: Slots): void {
    const hold = this.#holds.pop() as HeldDevice
    this.#requirements.pop()
    this.#ofClaim.set(of.sought.name, of.before?.pop() ?? nothing)
    for (const rule of of.constraints) if (concerns(rule.rule, request, way)) rule.remove()
    if (!hold.adminAccess) this.#discharge(hold.device, hold.consumed)
  }

  #charge(device: CompiledDevice, consumed: DeviceAmounts): void {
    if (device.isShared) addAmounts(this.#useOf(device), consumed)
    else this.#taken.add(device)
    const charges = this.#charged.get(device) ?? 0
    this.#charged.set(device, charges + 1)
    if (charges === 0 && device.counters.size > 0 && !this.#isInUse(device))
      addAmounts(this.#countersOf(device.pool), device.counters)
  }

  #discharge(device: CompiledDevice, consumed: DeviceAmounts): void {
    if (device.isShared) subtractAmounts(this.#useOf(device), consumed)
    else this.#taken.delete(device)
    const charges = (this.#charged.get(device) ?? 1) - 1
    this.#charged.set(device, charges)
    if (charges === 0 && device.counters.size > 0 && !this.#isInUse(device))
      subtractAmounts(this.#countersOf(device.pool), device.counters)
  }

  #isFree(device: CompiledDevice, consumed: DeviceAmounts): boolean {
    const inCluster = this.#context.ledger.useInCluster(device)
    if (inCluster === 'taken' || (!device.isShared && inCluster !== 'free')) return false
    if (device.isShared) {
      const used = this.#useOf(device)
      for (const [name, amount] of consumed)
        if ((used.get(name) ?? 0n) + amount > (device.capacity.get(name)?.value ?? 0n)) return false
    } else if (this.#taken.has(device) || this.#isReserved(device)) return false
    if (device.counters.size === 0 || (this.#charged.get(device) ?? 0) > 0 || this.#isInUse(device))
      return true
    const used = this.#countersOf(device.pool)
    for (const [key, amount] of device.counters)
      if ((used.get(key) ?? 0n) + amount > (device.pool.counters.get(key) ?? 0n)) return false
    return true
  }

  /** Whether this decision allocated the device to another consumer, or to this one as this type. */
  #isReserved(device: CompiledDevice): boolean {
    for (const hold of this.#context.ledger.holdsOn(device)) {
      if (hold.adminAccess) continue
      if (hold.consumer === this.#view.consumer ? hold.type === this.#type : !device.pool.isTemplate)
        return true
    }
    return false
  }

  /** Whether a shared device consumes its counters already. */
  #isInUse(device: CompiledDevice): boolean {
    if (!device.isShared) return false
    if (this.#context.ledger.useInCluster(device) !== 'free') return true
    for (const hold of this.#context.ledger.holdsOn(device)) {
      if (hold.adminAccess) continue
      if (!device.pool.isTemplate || (hold.consumer === this.#view.consumer && hold.type === this.#type))
        return true
    }
    return false
  }

  #useOf(device: CompiledDevice): Map<string, DeviceAmount> {
    let use = this.#sharedUse.get(device)
    if (use === undefined) {
      use = sharedUse(this.#context.ledger, device, this.#view.consumer, this.#type)
      this.#sharedUse.set(device, use)
    }
    return use
  }

  #countersOf(pool: DevicePool): Map<string, DeviceAmount> {
    let use = this.#counterUse.get(pool)
    if (use === undefined) {
      use = counterUse(this.#context.ledger, pool, this.#view.consumer, this.#type)
      this.#counterUse.set(pool, use)
    }
    return use
  }
}

const none: DeviceAmounts = new Map()

/** A claim while its devices are chosen. */
interface ClaimSearch {
  readonly sought: SoughtClaim
  readonly constraints: readonly ConstraintState[]
  /** The number of devices that were chosen for claims before it. */
  readonly first: number
  readonly index: number
  /** The requirements of the claim before each of its devices, to undo choices. */
  before?: Requirements[]
}

/** One alternative of a request while its devices are chosen. */
interface Slots {
  readonly of: ClaimSearch
  readonly at: number
  readonly request: CompiledRequest
  readonly way: RequestAlternative
  readonly devices: readonly CompiledDevice[]
  readonly count: number
}
