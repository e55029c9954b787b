/**
 * The devices that are in use: those that are allocated in the cluster, and those that this decision allocates. Changes
 * can be rolled back to a mark.
 */
import { type DeviceAmount, type DeviceAmounts, deviceAmount, qualifiedDeviceName } from '@tenon/api'
import type { Requirements } from '../../requirements/requirements.ts'
import { type AllocatedDevice, type DeviceAllocation } from '../../input/devices.ts'
import { addAmounts, raiseAmounts } from './amounts.ts'
import type { CompiledDevice, DevicePool } from './pools.ts'
import type { TypeDevices } from './pools.ts'

/** A node or an open claim that uses devices; compared by identity. */
export type Consumer = object

/** A device that a consumer uses if it becomes one of certain types. */
export interface HeldDevice {
  readonly consumer: Consumer
  readonly type: TypeDevices
  readonly device: CompiledDevice
  readonly consumed: DeviceAmounts
  /** Name of the claim. */
  readonly claim: string
  readonly request: string
  readonly adminAccess: boolean
}

/** The allocation of one claim by this decision. */
export interface Grant {
  readonly consumer: Consumer
  /** Node requirements for access to the devices, by type that the consumer may still become. */
  readonly requirements: ReadonlyMap<TypeDevices, Requirements>
  readonly usesTemplates: boolean
}

/** The part of a device that an allocated claim uses. */
interface Share {
  readonly allocation: DeviceAllocation
  /** Undefined for the whole device. */
  readonly consumed: DeviceAmounts | undefined
}

/** How much of a device is in use in the cluster. */
export type ClusterUse = 'free' | 'taken' | DeviceAmounts

export class DeviceLedger {
  readonly #shares: ReadonlyMap<string, readonly Share[]>
  readonly #allocations: ReadonlyMap<string, DeviceAllocation>
  /** UIDs of pods whose devices become free, unless other pods use them too. */
  readonly #leaving: Set<string>
  readonly #byDevice = new Map<CompiledDevice, Set<HeldDevice>>()
  readonly #byPool = new Map<DevicePool, Set<HeldDevice>>()
  readonly #byTaker = new Map<Consumer, Set<HeldDevice>>()
  readonly #grants = new Map<string, Grant>()
  #log: (() => void)[] | undefined

  constructor(allocations: readonly DeviceAllocation[], leaving: Iterable<string>) {
    const shares = new Map<string, Share[]>()
    for (const allocation of allocations)
      for (const device of allocation.devices) {
        const key = deviceKey(device.driver, device.pool, device.device)
        const known = shares.get(key) ?? []
        known.push({ allocation, consumed: consumedOf(device) })
        shares.set(key, known)
      }
    this.#shares = shares
    this.#allocations = new Map(allocations.map((allocation) => [allocation.claim, allocation]))
    this.#leaving = new Set(leaving)
  }

  /**
   * Starts to note changes, unless they are noted already.
   * @returns the point that a rollback can return to.
   */
  mark(): number {
    this.#log ??= []
    return this.#log.length
  }

  rollback(mark: number): void {
    const log = this.#log ?? []
    while (log.length > mark) log.pop()?.()
  }

  /** Frees devices that only these pods use; call {@link mark} before. */
  leave(pods: Iterable<string>): void {
    for (const pod of pods) {
      if (this.#leaving.has(pod)) continue
      this.#leaving.add(pod)
      this.#log?.push(() => this.#leaving.delete(pod))
    }
  }

  /** Whether a claim is allocated in the cluster and stays so (devices.md 3.4). */
  isSettled(claim: string): boolean {
    const allocation = this.#allocations.get(claim)
    return allocation !== undefined && !this.#isFreed(allocation)
  }

  #isFreed({ pods }: DeviceAllocation): boolean {
    return pods !== undefined && pods.length > 0 && pods.every((pod) => this.#leaving.has(pod))
  }

  /** How much of a published device is in use in the cluster. */
  useInCluster(device: CompiledDevice): ClusterUse {
    if (device.pool.isTemplate) return 'free'
    const shares = this.#shares.get(deviceKey(device.pool.driver, device.pool.name, device.name))
    if (shares === undefined) return 'free'
    let inCluster: 'free' | DeviceAmounts = 'free'
    for (const { allocation, consumed } of shares) {
      if (this.#isFreed(allocation)) continue
      if (consumed === undefined) return 'taken'
      const sum: Map<string, DeviceAmount> = new Map(typeof inCluster === 'object' ? inCluster : [])
      addAmounts(sum, consumed)
      inCluster = sum
    }
    return inCluster
  }

  grantOf(claim: string): Grant | undefined {
    return this.#grants.get(claim)
  }

  holdsOn(device: CompiledDevice): Iterable<HeldDevice> {
    return this.#byDevice.get(device) ?? []
  }

  holdsIn(pool: DevicePool): Iterable<HeldDevice> {
    return this.#byPool.get(pool) ?? []
  }

  holdsOf(consumer: Consumer): Iterable<HeldDevice> {
    return this.#byTaker.get(consumer) ?? []
  }

  /** @throws Error when the claim is allocated already, which is a bug. */
  grant(claim: string, grant: Grant, holds: readonly HeldDevice[]): void {
    if (this.#grants.has(claim)) throw new Error(`claim ${claim} has its devices already`)
    this.#setGrant(claim, grant)
    for (const hold of holds) this.#add(hold)
  }

  /** Frees what the consumer holds for types that it can no longer become. */
  retain(consumer: Consumer, types: ReadonlySet<TypeDevices>): void {
    const holds = this.#byTaker.get(consumer)
    if (holds === undefined) return
    const claims = new Set<string>()
    for (const hold of holds) {
      claims.add(hold.claim)
      if (!types.has(hold.type)) this.#remove(hold)
    }
    for (const claim of claims) {
      const grant = this.#grants.get(claim)
      if (grant === undefined) continue
      const requirements = new Map([...grant.requirements].filter(([type]) => types.has(type)))
      if (requirements.size < grant.requirements.size) this.#setGrant(claim, { ...grant, requirements })
    }
  }

  #setGrant(claim: string, grant: Grant): void {
    const before = this.#grants.get(claim)
    this.#grants.set(claim, grant)
    this.#log?.push(() => {
      if (before === undefined) this.#grants.delete(claim)
      else this.#grants.set(claim, before)
    })
  }

  #add(hold: HeldDevice): void {
    this.#put(hold)
    this.#log?.push(() => this.#drop(hold))
  }

  #remove(hold: HeldDevice): void {
    this.#drop(hold)
    this.#log?.push(() => this.#put(hold))
  }

  #put(hold: HeldDevice): void {
    addTo(this.#byDevice, hold.device, hold)
    addTo(this.#byPool, hold.device.pool, hold)
    addTo(this.#byTaker, hold.consumer, hold)
  }

  #drop(hold: HeldDevice): void {
    this.#byDevice.get(hold.device)?.delete(hold)
    this.#byPool.get(hold.device.pool)?.delete(hold)
    this.#byTaker.get(hold.consumer)?.delete(hold)
  }
}

function addTo<K>(map: Map<K, Set<HeldDevice>>, key: K, hold: HeldDevice): void {
  const known = map.get(key)
  if (known === undefined) map.set(key, new Set([hold]))
  else known.add(hold)
}

function deviceKey(driver: string, pool: string, device: string): string {
  return `${driver}\n${pool}\n${device}`
}

function consumedOf({ driver, consumedCapacity }: AllocatedDevice): DeviceAmounts | undefined {
  if (consumedCapacity === undefined) return undefined
  const amounts = Object.entries(consumedCapacity)
  return new Map(amounts.map(([name, amount]) => [qualifiedDeviceName(name, driver), deviceAmount(amount)]))
}

/**
 * The used capacity of a device that may be shared: by other consumers, and by this consumer as this type.
 */
export function sharedUse(
  ledger: DeviceLedger,
  device: CompiledDevice,
  consumer: Consumer,
  type: TypeDevices,
): Map<string, DeviceAmount> {
  const inCluster = ledger.useInCluster(device)
  const used = new Map<string, DeviceAmount>(typeof inCluster === 'object' ? inCluster : [])
  const holds = [...ledger.holdsOn(device)].filter(
    (hold) => !device.pool.isTemplate || hold.consumer === consumer,
  )
  addAmounts(
    used,
    heldBy(holds, consumer, type, ({ consumed }) => consumed),
  )
  return used
}

/** The consumed counters of a pool; each device counts once (devices.md 3.13). */
export function counterUse(
  ledger: DeviceLedger,
  pool: DevicePool,
  consumer: Consumer,
  type: TypeDevices,
): Map<string, DeviceAmount> {
  const used = new Map<string, DeviceAmount>()
  const charged = new Set<CompiledDevice>()
  if (!pool.isTemplate)
    for (const device of pool.devices)
      if (device.counters.size > 0 && ledger.useInCluster(device) !== 'free') {
        addAmounts(used, device.counters)
        charged.add(device)
      }
  const counted = new Set<string>()
  const holds: HeldDevice[] = []
  for (const hold of ledger.holdsIn(pool)) {
    const { device } = hold
    if (hold.adminAccess || device.counters.size === 0 || charged.has(device)) continue
    if (pool.isTemplate && (hold.consumer !== consumer || hold.type !== type)) continue
    if (device.isShared) {
      if (counted.has(device.name)) continue
      counted.add(device.name)
    }
    holds.push(hold)
  }
  addAmounts(
    used,
    heldBy(holds, consumer, type, ({ device }) => device.counters),
  )
  return used
}

/** The maximum over the types of each other consumer, plus the amounts of this consumer as this type. */
function heldBy(
  holds: Iterable<HeldDevice>,
  consumer: Consumer,
  type: TypeDevices,
  amountsOf: (hold: HeldDevice) => DeviceAmounts,
): DeviceAmounts {
  const byTaker = new Map<Consumer, Map<TypeDevices, Map<string, DeviceAmount>>>()
  for (const hold of holds) {
    if (hold.adminAccess || (hold.consumer === consumer && hold.type !== type)) continue
    const byType = byTaker.get(hold.consumer) ?? new Map<TypeDevices, Map<string, DeviceAmount>>()
    byTaker.set(hold.consumer, byType)
    const sum = byType.get(hold.type) ?? new Map<string, DeviceAmount>()
    byType.set(hold.type, sum)
    addAmounts(sum, amountsOf(hold))
  }
  const total = new Map<string, DeviceAmount>()
  for (const byType of byTaker.values()) {
    const most = new Map<string, DeviceAmount>()
    for (const sum of byType.values()) raiseAmounts(most, sum)
    addAmounts(total, most)
  }
  return total
}
