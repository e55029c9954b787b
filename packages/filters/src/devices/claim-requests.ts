/** The requests of a ResourceClaim, parsed for allocation. */
import {
  consumedCapacity,
  type DeviceAmounts,
  deviceAmount,
  type DeviceConstraint,
  type DeviceRequest,
  type DeviceSubRequest,
  type DeviceToleration,
  qualifiedDeviceName,
  type ResourceClaim,
  toleratesDeviceTaint,
} from '@tenon/api'
import { askDeviceSelector, compileDeviceSelector } from '@tenon/cel'
import type { DeviceIndex } from './device-index.ts'
import type { PublishedDevice } from './device-pools.ts'

/** One alternative of a request. */
export interface RequestAlternative {
  /** `request`, or `request/subrequest` for an entry of `firstAvailable`. */
  readonly name: string
  readonly request: string
  /** CEL expressions that the device must meet. */
  readonly selectors: readonly string[]
  /** Undefined: all matching devices. */
  readonly count: number | undefined
  readonly adminAccess: boolean
  readonly tolerations: readonly DeviceToleration[]
  readonly capacity: Readonly<Record<string, string>>
}

/** A constraint: an attribute must be equal, or different, on all devices. */
export interface DeviceRule {
  readonly attribute: string
  readonly isDistinct: boolean
  /** Names of requests and subrequests; undefined = all. */
  readonly requests: ReadonlySet<string> | undefined
}

/** The requests of a claim, each with its alternatives in the order in which they are tried. */
export interface ClaimRequests {
  readonly requests: readonly (readonly RequestAlternative[])[]
  readonly rules: readonly DeviceRule[]
}

/** The requests of a claim, or what is wrong with it. */
export function requestsOf({ spec }: ResourceClaim, index: DeviceIndex): ClaimRequests | string {
  const requests: (readonly RequestAlternative[])[] = []
  for (const request of spec?.devices?.requests ?? []) {
    const ways: RequestAlternative[] = []
    for (const [name, way] of alternativesOf(request)) {
      const deviceClass = index.class(way.deviceClassName)
      if (deviceClass === undefined)
        return `request ${name}: device class ${way.deviceClassName} does not exist`
      const selectors = [...(deviceClass.spec.selectors ?? []), ...(way.selectors ?? [])]
      ways.push({
        name,
        request: request.name,
        selectors: selectors.map(({ cel }) => cel?.expression ?? ''),
        count: way.allocationMode === 'All' ? undefined : (way.count ?? 1),
        adminAccess: way.adminAccess === true,
        tolerations: way.tolerations ?? [],
        capacity: way.capacity?.requests ?? {},
      })
    }
    requests.push(ways)
  }
  return { requests, rules: (spec?.devices?.constraints ?? []).flatMap(ruleOf) }
}

function alternativesOf({
  name,
  exactly,
  firstAvailable = [],
}: DeviceRequest): readonly [string, DeviceSubRequest][] {
  if (exactly !== undefined) return [[name, exactly]]
  return firstAvailable.map((way) => [`${name}/${way.name ?? ''}`, way])
}

function ruleOf({ requests, matchAttribute, distinctAttribute }: DeviceConstraint): readonly DeviceRule[] {
  const attribute = matchAttribute ?? distinctAttribute
  if (attribute === undefined) return []
  const named = requests === undefined || requests.length === 0 ? undefined : new Set(requests)
  return [{ attribute, isDistinct: matchAttribute === undefined, requests: named }]
}

/** Whether a constraint applies to the devices of an alternative. */
export function concerns({ requests }: DeviceRule, { name, request }: RequestAlternative): boolean {
  return requests === undefined || requests.has(name) || requests.has(request)
}

/** What an alternative consumes of a device; undefined if the device does not match. */
export function suitability(device: PublishedDevice, way: RequestAlternative): DeviceAmounts | undefined {
  const { pool, taints } = device
  if (!way.selectors.every((selector) => isSelected(device, selector))) return undefined
  if (taints.some((taint) => taint.effect !== 'None' && !toleratesDeviceTaint(way.tolerations, taint)))
    return undefined
  const requested = Object.entries(way.capacity).map(
    ([name, amount]) => [qualifiedDeviceName(name, pool.driver), deviceAmount(amount)] as const,
  )
  return consumedCapacity(device.capacity, new Map(requested))
}

function isSelected(device: PublishedDevice, selector: string): boolean {
  let answer = device.answers.get(selector)
  if (answer === undefined) {
    answer = askDeviceSelector(compileDeviceSelector(selector), device.source, device.pool.driver) === true
    device.answers.set(selector, answer)
  }
  return answer
}
