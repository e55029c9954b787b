/**
 * Allocates devices of a node to claims as kube-scheduler does: depth first, the first complete solution wins. Written
 * independently of the engine's search, so that tests can compare the two.
 */
import {
  type DeviceAllocationResult,
  type DeviceAmount,
  type NodeSelector,
  type ResourceClaim,
  meetsNodeSelectorTerm,
} from '@tenon/api'
import type { NodeEntry } from '../cluster/node-entry.ts'
import {
  type ClaimRequests,
  concerns,
  type DeviceRule,
  type RequestAlternative,
  suitability,
} from './claim-requests.ts'
import type { DeviceIndex } from './device-index.ts'
import type { PublishedDevice, PublishedPool } from './device-pools.ts'

/** The allocation in a claim's status. */
export type ClaimAllocation = NonNullable<NonNullable<ResourceClaim['status']>['allocation']>

/** Maximum devices of one claim. */
const mostDevices = 32
/** Devices that are tried for one pod on one node. */
const mostSteps = 50_000

interface Pick {
  readonly device: PublishedDevice
  readonly way: RequestAlternative
  readonly consumed: ReadonlyMap<string, DeviceAmount>
}

/** The allocation of each claim on the node; undefined if they do not all get devices. */
export function allocate(
  claims: readonly ClaimRequests[],
  entry: NodeEntry,
  index: DeviceIndex,
): readonly ClaimAllocation[] | undefined {
  const picks = new Allocator(entry, index).run(claims)
  return picks?.map((ofClaim) => allocationOf(ofClaim, entry.name))
}

class Allocator {
  readonly #index: DeviceIndex
  readonly #pools: readonly PublishedPool[]
  readonly #reachable: ReadonlyMap<PublishedPool, readonly PublishedDevice[]>
  readonly #picks: Pick[][] = []
  #steps = 0

  constructor(entry: NodeEntry, index: DeviceIndex) {
    this.#index = index
    this.#pools = index.pools(entry.name)
    this.#reachable = new Map(
      this.#pools.map((pool) => [pool, pool.devices.filter(({ place }) => reaches(entry, place))]),
    )
  }

  run(claims: readonly ClaimRequests[]): readonly (readonly Pick[])[] | undefined {
    return this.#claim(claims, 0) ? this.#picks : undefined
  }

  #claim(claims: readonly ClaimRequests[], at: number): boolean {
    const claim = claims[at]
    if (claim === undefined) return true
    this.#picks.push([])
    if (this.#request(claim, 0, () => this.#claim(claims, at + 1))) return true
    this.#picks.length = at
    return false
  }

  #request(claim: ClaimRequests, at: number, rest: () => boolean): boolean {
    const ways = claim.requests[at]
    if (ways === undefined) return rest()
    return ways.some((way) => {
      const devices = this.#suiting(way)
      if (devices === undefined) return false
      const next = () => this.#request(claim, at + 1, rest)
      if (way.count !== undefined) return this.#some(claim, way, devices, way.count, next)
      return devices.length > 0 && this.#every(claim, way, devices, 0, next)
    })
  }

  /**
   * Devices that match an alternative, free or not; undefined if it asks for all devices and they are not all known.
   */
  #suiting(way: RequestAlternative): readonly PublishedDevice[] | undefined {
    const wantsAll = way.count === undefined
    const found: PublishedDevice[] = []
    for (const pool of this.#pools) {
      if (pool.problem !== undefined || !pool.isComplete) {
        if (wantsAll) return undefined
        continue
      }
      for (const device of this.#reachable.get(pool) ?? [])
        if (suitability(device, way) !== undefined) found.push(device)
    }
    return found
  }

  #some(
    claim: ClaimRequests,
    way: RequestAlternative,
    devices: readonly PublishedDevice[],
    count: number,
    next: () => boolean,
  ): boolean {
    if (count === 0) return next()
    for (const [at, device] of devices.entries()) {
      if (!this.#pick(claim, way, device)) continue
      const isRepeatable = way.adminAccess || device.source.allowMultipleAllocations === true
      if (this.#some(claim, way, devices.slice(isRepeatable ? at : at + 1), count - 1, next)) return true
      this.#picks.at(-1)?.pop()
      if (this.#steps > mostSteps) return false
    }
    return false
  }

  #every(
    claim: ClaimRequests,
    way: RequestAlternative,
    devices: readonly PublishedDevice[],
    at: number,
    next: () => boolean,
  ): boolean {
    const device = devices[at]
    if (device === undefined) return next()
    if (!this.#pick(claim, way, device)) return false
    if (this.#every(claim, way, devices, at + 1, next)) return true
    // The choices of later claims are undone by now.
    this.#picks.at(-1)?.pop()
    return false
  }

  /** Chooses the device for the current claim, if constraints and earlier choices allow it. */
  #pick(claim: ClaimRequests, way: RequestAlternative, device: PublishedDevice): boolean {
    this.#steps++
    const own = this.#picks.at(-1)
    const consumed = suitability(device, way)
    if (own === undefined || consumed === undefined || own.length >= mostDevices || this.#steps > mostSteps)
      return false
    const pick = { device, way, consumed }
    if (!way.adminAccess && !this.#isFree(pick)) return false
    if (!claim.rules.every((rule) => !concerns(rule, way) || holds(rule, [...own, pick]))) return false
    own.push(pick)
    return true
  }

  #isFree({ device, consumed }: Pick): boolean {
    const others = this.#picks.flat().filter(({ way }) => !way.adminAccess)
    const same = others.filter((other) => other.device === device)
    const use = this.#index.useOf(device)
    if (device.source.allowMultipleAllocations === true) {
      if (use === 'whole') return false
      for (const [name, amount] of consumed) {
        const taken = same.reduce(
          (sum, other) => sum + (other.consumed.get(name) ?? 0n),
          use?.get(name) ?? 0n,
        )
        if (taken + amount > (device.capacity.get(name)?.value ?? 0n)) return false
      }
    } else if (use !== undefined || same.length > 0) return false
    return device.counters.size === 0 || this.#hasCounters(device, others)
  }

  /** Each device in use counts once, even if several claims share it. */
  #hasCounters(device: PublishedDevice, picks: readonly Pick[]): boolean {
    const { pool } = device
    const used = new Set([
      device,
      ...pool.devices.filter((other) => other.counters.size > 0 && this.#index.useOf(other) !== undefined),
      ...picks.flatMap((pick) => (pick.device.pool === pool ? [pick.device] : [])),
    ])
    const sums = new Map<string, DeviceAmount>()
    for (const { counters } of used)
      for (const [counter, amount] of counters) sums.set(counter, (sums.get(counter) ?? 0n) + amount)
    return [...sums].every(([counter, sum]) => sum <= (pool.counters.get(counter) ?? 0n))
  }
}

function reaches({ name, labels }: NodeEntry, { nodeName, nodeSelector }: PublishedDevice['place']): boolean {
  if (nodeName !== undefined) return nodeName === name
  return nodeSelector?.nodeSelectorTerms.some((term) => meetsNodeSelectorTerm(term, name, labels)) ?? true
}

function holds(rule: DeviceRule, picks: readonly Pick[]): boolean {
  const values = picks
    .filter(({ way }) => concerns(rule, way))
    .map(({ device }) => device.attributes.get(rule.attribute) ?? new Set<string>())
  if (values.some(({ size }) => size === 0)) return false
  const [first = new Set<string>(), ...others] = values
  if (!rule.isDistinct)
    return others.reduce((common, each) => common.intersection(each), new Set(first)).size > 0
  return values.every((each, at) => values.slice(at + 1).every((other) => each.isDisjointFrom(other)))
}

function allocationOf(picks: readonly Pick[], nodeName: string): ClaimAllocation {
  const nodeSelector = selectorOf(picks, nodeName)
  return {
    devices: { results: picks.map(resultOf) },
    ...(nodeSelector && { nodeSelector }),
  }
}

function resultOf({ device: { pool, source }, way, consumed }: Pick): DeviceAllocationResult {
  const isShared = source.allowMultipleAllocations === true && consumed.size > 0
  return {
    request: way.name,
    driver: pool.driver,
    pool: pool.name,
    device: source.name,
    ...(way.adminAccess && { adminAccess: true }),
    ...(way.tolerations.length > 0 && { tolerations: way.tolerations }),
    ...(isShared && {
      consumedCapacity: Object.fromEntries([...consumed].map(([name, amount]) => [name, quantityOf(amount)])),
    }),
  }
}

/** Amounts are in thousandths. */
function quantityOf(amount: DeviceAmount): string {
  return amount % 1000n === 0n ? String(amount / 1000n) : `${amount}m`
}

/** The nodes with access to all the devices; undefined = all nodes. */
function selectorOf(picks: readonly Pick[], nodeName: string): NodeSelector | undefined {
  const places = picks.map(({ device }) => device.place)
  if (places.some((place) => place.nodeName !== undefined))
    return {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [nodeName] }] }],
    }
  const terms = places.flatMap(({ nodeSelector }) => nodeSelector?.nodeSelectorTerms[0] ?? [])
  if (terms.length === 0) return undefined
  const matchExpressions = terms.flatMap((term) => term.matchExpressions ?? [])
  const matchFields = terms.flatMap((term) => term.matchFields ?? [])
  return {
    nodeSelectorTerms: [
      {
        ...(matchExpressions.length > 0 && { matchExpressions }),
        ...(matchFields.length > 0 && { matchFields }),
      },
    ],
  }
}
