/**
 * Slices, classes and claims of a cluster, and which devices are in use. Each change only updates what it affects.
 */
import {
  type DeviceAmount,
  type DeviceAmounts,
  type DeviceClass,
  deviceAmount,
  type DeviceTaintRule,
  extendedResourceClasses,
  type KubeObject,
  qualifiedDeviceName,
  type ResourceClaim,
  type ResourceSlice,
} from '@tenon/api'
import { poolOf, type PublishedDevice, type PublishedPool } from './device-pools.ts'

/** What claims use of a device: all of it, or amounts of its capacity. */
export type DeviceUse = 'whole' | DeviceAmounts

/** The slices of one pool of a driver, of every generation. */
interface PoolSlices {
  readonly key: string
  readonly slices: Map<string, ResourceSlice>
  pool: PublishedPool | undefined
}

/** The caller updates it from its watches. */
export class DeviceIndex {
  readonly #slices = new Map<string, ResourceSlice>()
  readonly #pools = new Map<string, PoolSlices>()
  /** Pools with slices of a single node, by node name. */
  readonly #byNode = new Map<string, Set<PoolSlices>>()
  /** Pools with slices that do not belong to a single node. */
  readonly #others = new Set<PoolSlices>()
  readonly #classes = new Map<string, DeviceClass>()
  readonly #rules = new Map<string, DeviceTaintRule>()
  readonly #claims = new Map<string, ResourceClaim>()
  /** What each claim uses, by device. */
  readonly #uses = new Map<string, Map<string, DeviceUse>>()
  readonly #hasImplicitNames: (isGateOn: boolean) => boolean
  /** Undefined after a change of classes. */
  #resourceClasses: ReadonlyMap<string, string> | undefined

  /**
   * @param hasImplicitNames whether each class serves an extended resource by its own name, given whether the server keeps
   *   explicit names.
   */
  constructor(hasImplicitNames: (isGateOn: boolean) => boolean = () => false) {
    this.#hasImplicitNames = hasImplicitNames
  }

  setSlice(slice: ResourceSlice): void {
    this.removeSlice(slice)
    const key = poolKey(slice)
    const pool = this.#pools.get(key) ?? { key, slices: new Map<string, ResourceSlice>(), pool: undefined }
    this.#pools.set(key, pool)
    this.#slices.set(slice.metadata.name, slice)
    pool.slices.set(slice.metadata.name, slice)
    pool.pool = undefined
    const { nodeName } = slice.spec
    if (nodeName === undefined || nodeName === '') this.#others.add(pool)
    else {
      const known = this.#byNode.get(nodeName) ?? new Set()
      this.#byNode.set(nodeName, known.add(pool))
    }
  }

  removeSlice({ metadata }: ResourceSlice): void {
    const known = this.#slices.get(metadata.name)
    const pool = known && this.#pools.get(poolKey(known))
    if (known === undefined || pool === undefined) return
    this.#slices.delete(metadata.name)
    pool.slices.delete(metadata.name)
    pool.pool = undefined
    if (pool.slices.size > 0) return
    this.#pools.delete(pool.key)
    this.#others.delete(pool)
    for (const [nodeName, pools] of this.#byNode) {
      pools.delete(pool)
      if (pools.size === 0) this.#byNode.delete(nodeName)
    }
  }

  setClass(deviceClass: DeviceClass): void {
    this.#classes.set(deviceClass.metadata.name, deviceClass)
    this.#resourceClasses = undefined
  }

  removeClass({ metadata }: DeviceClass): void {
    this.#classes.delete(metadata.name)
    this.#resourceClasses = undefined
  }

  setTaintRule(rule: DeviceTaintRule): void {
    this.#rules.set(rule.metadata.name, rule)
    this.#forgetPools()
  }

  removeTaintRule({ metadata }: DeviceTaintRule): void {
    if (this.#rules.delete(metadata.name)) this.#forgetPools()
  }

  /** Taint rules are few and rarely change, so all pools are read again. */
  #forgetPools(): void {
    for (const pool of this.#pools.values()) pool.pool = undefined
  }

  setClaim(claim: ResourceClaim): void {
    this.removeClaim(claim)
    const key = keyOf(claim)
    this.#claims.set(key, claim)
    for (const [device, use] of usesOf(claim)) {
      const known = this.#uses.get(device) ?? new Map<string, DeviceUse>()
      this.#uses.set(device, known.set(key, use))
    }
  }

  removeClaim(claim: ResourceClaim): void {
    const key = keyOf(claim)
    const known = this.#claims.get(key)
    if (known === undefined) return
    this.#claims.delete(key)
    for (const device of usesOf(known).keys()) {
      const uses = this.#uses.get(device)
      uses?.delete(key)
      if (uses?.size === 0) this.#uses.delete(device)
    }
  }

  class(name: string): DeviceClass | undefined {
    return this.#classes.get(name)
  }

  /** Whether devices serve any extended resource. */
  get servesResources(): boolean {
    return this.#extendedResources().size > 0
  }

  /** The name of the class that serves an extended resource where a node has none of it. */
  classOf(resource: string): string | undefined {
    return this.#extendedResources().get(resource)
  }

  #extendedResources(): ReadonlyMap<string, string> {
    if (this.#resourceClasses === undefined) {
      const classes = [...this.#classes.values()]
      const isGateOn = classes.some(({ spec }) => (spec.extendedResourceName ?? '') !== '')
      this.#resourceClasses = extendedResourceClasses(classes, this.#hasImplicitNames(isGateOn))
    }
    return this.#resourceClasses
  }

  claim(namespace: string, name: string): ResourceClaim | undefined {
    return this.#claims.get(`${namespace}/${name}`)
  }

  /** Pools of the node, and pools that belong to no single node, in order of driver and name. */
  pools(nodeName: string): readonly PublishedPool[] {
    const own = this.#byNode.get(nodeName) ?? new Set()
    const all = [...own.union(this.#others)].toSorted((a, b) => (a.key < b.key ? -1 : 1))
    return all.map((each) => (each.pool ??= poolOf([...each.slices.values()], [...this.#rules.values()])))
  }

  /** What claims without admin access use of a device; undefined = nothing. */
  useOf({ pool, source }: PublishedDevice): DeviceUse | undefined {
    const uses = this.#uses.get(deviceKey(pool.driver, pool.name, source.name))
    if (uses === undefined) return undefined
    const sum = new Map<string, DeviceAmount>()
    for (const use of uses.values()) {
      if (use === 'whole') return 'whole'
      addTo(sum, use)
    }
    return sum
  }
}

function addTo(sum: Map<string, DeviceAmount>, amounts: DeviceAmounts): void {
  for (const [name, amount] of amounts) sum.set(name, (sum.get(name) ?? 0n) + amount)
}

/** What a claim uses, by device. */
function usesOf({ status }: ResourceClaim): ReadonlyMap<string, DeviceUse> {
  const uses = new Map<string, DeviceUse>()
  for (const result of status?.allocation?.devices?.results ?? []) {
    if (result.adminAccess === true) continue
    const { driver, consumedCapacity } = result
    const key = deviceKey(driver, result.pool, result.device)
    const before = uses.get(key)
    if (consumedCapacity === undefined || before === 'whole') {
      uses.set(key, 'whole')
      continue
    }
    const sum = new Map<string, DeviceAmount>(before)
    const amounts = Object.entries(consumedCapacity)
    addTo(
      sum,
      new Map(amounts.map(([name, amount]) => [qualifiedDeviceName(name, driver), deviceAmount(amount)])),
    )
    uses.set(key, sum)
  }
  return uses
}

function poolKey({ spec }: ResourceSlice): string {
  return `${spec.driver}\n${spec.pool.name}`
}

function deviceKey(driver: string, pool: string, device: string): string {
  return `${driver}\n${pool}\n${device}`
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
