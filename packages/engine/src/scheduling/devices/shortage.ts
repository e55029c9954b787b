/** What is missing for a claim without devices: which request no device can meet, and why (ask.md 2). */
import { consumedCapacity, type DeviceAmount, type DeviceTaint, qualifiedDeviceName } from '@tenon/api'
import type { ClaimShortage, AlternativeShortage } from '../../reasons/device-reasons.ts'
import type { CompiledDevice, DevicePool } from './pools.ts'
import type { TypeDevices } from './pools.ts'
import type { CompiledClaim, CompiledRequest, RequestAlternative, Suitabilities } from './requests.ts'

/** All devices that a claim could get. */
export interface DeviceSupply {
  /** Published pools. */
  readonly published: readonly DevicePool[]
  /** Published pools that do not belong to a single node. Requests for all devices need to know them all. */
  readonly common: readonly DevicePool[]
  /** The devices of new nodes that meet the pod's other rules. */
  readonly asked: ReadonlySet<TypeDevices>
  /** Names of all instance types, by their devices. */
  readonly types: ReadonlyMap<TypeDevices, readonly string[]>
}

/** Devices of one node, or those with access from several nodes. */
type AccessibleDevices = readonly CompiledDevice[]

export function shortageOf(
  { requests }: CompiledClaim,
  supply: DeviceSupply,
  suitabilities: Suitabilities,
): ClaimShortage {
  const places = placesOf(supply)
  for (const request of requests) {
    const ways = waysWithout(request, places, supply, suitabilities)
    if (ways !== undefined) return { kind: 'request', ways }
  }
  return { kind: 'together' }
}

/** @returns undefined when some alternative can be met. */
function waysWithout(
  { ways }: CompiledRequest,
  places: readonly AccessibleDevices[],
  supply: DeviceSupply,
  suitabilities: Suitabilities,
): (ClaimShortage & { readonly kind: 'request' })['ways'] | undefined {
  const found: { readonly request: string; readonly why: AlternativeShortage }[] = []
  for (const way of ways) {
    const own = alternativeShortage(way, places, supply.common, suitabilities)
    if (own === undefined) return undefined
    const others = [...supply.types].flatMap(([type, names]) =>
      supply.asked.has(type) || alternativeShortage(way, [devicesOf(type)], [], suitabilities) !== undefined
        ? []
        : names,
    )
    const why: AlternativeShortage =
      others.length === 0 ? own : { kind: 'otherTypes', instanceTypes: [...new Set(others)].toSorted() }
    found.push({ request: way.name, why })
  }
  return found
}

function placesOf({ published, asked }: DeviceSupply): readonly AccessibleDevices[] {
  const byNode = Map.groupBy(
    published.flatMap(({ devices }) => devices),
    ({ place }) => (place.kind === 'node' ? place.name : ''),
  )
  return [...[...asked].map(devicesOf), ...byNode.values()]
}

const devicesOf = ({ pools }: TypeDevices): AccessibleDevices => pools.flatMap(({ devices }) => devices)

function alternativeShortage(
  way: RequestAlternative,
  places: readonly AccessibleDevices[],
  common: readonly DevicePool[],
  suitabilities: Suitabilities,
): AlternativeShortage | undefined {
  const all = places.flat()
  const { deviceClass } = way
  const [ofClass, own] = [way.selectors.slice(0, way.ofClass), way.selectors.slice(way.ofClass)]
  const answer = (selector: RequestAlternative['selectors'][number], device: CompiledDevice) =>
    suitabilities.answer(selector, device)
  const inClass = all.filter((device) => ofClass.every((selector) => answer(selector, device) === true))
  if (inClass.length === 0) return { kind: 'class', deviceClass }
  const selected = inClass.filter((device) => own.every((selector) => answer(selector, device) === true))
  if (selected.length === 0) {
    // If one selector matches no device, it explains more than all selectors together.
    const alone = own.find((selector) => inClass.every((device) => answer(selector, device) !== true))
    const expressions = (alone === undefined ? own : [alone]).map(({ text }) => text)
    const failure =
      alone && inClass.map((device) => answer(alone, device)).find((each) => typeof each === 'object')
    return {
      kind: 'selectors',
      deviceClass,
      expressions,
      ...(typeof failure === 'object' && { problem: failure.problem }),
    }
  }
  const usable = selected.filter((device) => suitabilities.untolerated(way, device).length === 0)
  if (usable.length === 0) {
    const taints = selected.flatMap((device) => suitabilities.untolerated(way, device))
    return { kind: 'taints', taints: distinct(taints) }
  }
  const roomy = usable.filter((device) => suitabilities.of(way, device).kind === 'suits')
  if (roomy.length === 0) return capacityShortage(way, usable)
  if (way.count === undefined) {
    const broken = common.find((pool) => pool.problem !== undefined || !pool.isComplete)
    if (broken === undefined) return undefined
    const { driver, name: pool, problem } = broken
    return { kind: 'pool', driver, pool, ...(problem !== undefined && { problem }) }
  }
  const suiting = new Set(roomy)
  const counts = places.map((place) => {
    const here = place.filter((device) => suiting.has(device))
    return here.some(({ isShared }) => isShared || way.adminAccess) ? Number.MAX_SAFE_INTEGER : here.length
  })
  const most = Math.max(...counts)
  return most < way.count ? { kind: 'count', asked: way.count, most } : undefined
}

function distinct(taints: readonly DeviceTaint[]): readonly DeviceTaint[] {
  return [
    ...new Map(taints.map((taint) => [`${taint.key}=${taint.value ?? ''}:${taint.effect}`, taint])).values(),
  ]
}

/**
 * The first capacity that no device has. If each single capacity exists, but no device has all of them, the first one.
 */
function capacityShortage(way: RequestAlternative, devices: readonly CompiledDevice[]): AlternativeShortage {
  const amounts = [...way.capacity]
  const isMet = ([name, amount]: readonly [string, DeviceAmount]) =>
    devices.some(({ capacity, pool }) => {
      const own = qualifiedDeviceName(name, pool.driver)
      return consumedCapacity(capacity, new Map([[own, amount]])) !== undefined
    })
  const [name, asked] = amounts.find((each) => !isMet(each)) ?? amounts[0] ?? ['', 0n]
  const values = devices.flatMap(
    ({ capacity, pool }) => capacity.get(qualifiedDeviceName(name, pool.driver))?.value ?? [],
  )
  const most = values.reduce<DeviceAmount | undefined>(
    (max, value) => (max === undefined || value > max ? value : max),
    undefined,
  )
  return {
    kind: 'capacity',
    name,
    asked: quantityText(asked),
    ...(most !== undefined && { most: quantityText(most) }),
  }
}

/** An amount (in thousandths) as a quantity with the largest exact binary suffix. */
function quantityText(amount: DeviceAmount): string {
  if (amount % 1000n !== 0n) return `${amount}m`
  let whole = amount / 1000n
  let suffix = ''
  for (const next of ['Ki', 'Mi', 'Gi', 'Ti']) {
    if (whole === 0n || whole % 1024n !== 0n) break
    whole /= 1024n
    suffix = next
  }
  return `${whole}${suffix}`
}
