/** ResourceClaims compiled: requests with their selectors, and constraints (devices.md 3.9). */
import {
  consumedCapacity,
  type Device,
  deviceAmount,
  type DeviceAmount,
  type DeviceAmounts,
  type DeviceClass,
  type DeviceConstraint,
  type DeviceRequest,
  type DeviceSubRequest,
  type DeviceTaint,
  type DeviceToleration,
  type ResourceClaim,
  toleratesDeviceTaint,
} from '@tenon/api'
import type { CompiledDevice } from './pools.ts'
import {
  askDeviceSelector,
  type CompiledDeviceSelector,
  compileDeviceSelector,
  type DeviceSelectorAnswer,
} from '@tenon/cel'

/** Maximum devices of one claim. */
export const mostDevicesPerClaim = 32

/** A request of a claim. The first alternative that can be met is used. */
export interface CompiledRequest {
  readonly name: string
  readonly ways: readonly RequestAlternative[]
}

/** A number of devices, or all devices, that meet selectors, tolerations and capacity. */
export interface RequestAlternative {
  /** `request`, or `request/subrequest` for an entry of `firstAvailable`. */
  readonly name: string
  readonly deviceClass: string
  readonly selectors: readonly CompiledDeviceSelector[]
  /** How many of the selectors, at the beginning, are those of the class. */
  readonly ofClass: number
  /** Undefined: all matching devices. */
  readonly count: number | undefined
  readonly adminAccess: boolean
  readonly tolerations: readonly DeviceToleration[]
  /** By name as in the claim; a name without a domain belongs to the driver. */
  readonly capacity: DeviceAmounts
}

export interface CompiledConstraint {
  readonly kind: 'match' | 'distinct'
  readonly attribute: string
  /** Names of requests and subrequests; undefined = all. */
  readonly requests: ReadonlySet<string> | undefined
}

export interface CompiledClaim {
  readonly requests: readonly CompiledRequest[]
  readonly constraints: readonly CompiledConstraint[]
}

/** @returns the claim, or what is wrong with it. */
export function compileClaim(
  spec: ResourceClaim['spec'],
  classes: ReadonlyMap<string, DeviceClass>,
): CompiledClaim | string {
  const { requests = [], constraints = [] } = spec?.devices ?? {}
  try {
    const compiled = requests.map((request) => compileRequest(request, classes))
    const problem = compiled.find((request) => typeof request === 'string')
    if (typeof problem === 'string') return problem
    const whole = compiled.filter((request) => typeof request !== 'string')
    const least = whole.reduce((sum, { ways }) => sum + Math.min(...ways.map(({ count }) => count ?? 1)), 0)
    if (least > mostDevicesPerClaim)
      return `it asks for ${least} devices, and a claim may have ${mostDevicesPerClaim}`
    const rules = constraints.map(compileConstraint)
    const wrong = rules.find((rule) => typeof rule === 'string')
    if (typeof wrong === 'string') return wrong
    return { requests: whole, constraints: rules.filter((rule) => typeof rule !== 'string') }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function compileRequest(
  { name, exactly, firstAvailable }: DeviceRequest,
  classes: ReadonlyMap<string, DeviceClass>,
): CompiledRequest | string {
  const given = exactly === undefined ? (firstAvailable ?? []) : [exactly]
  if (given.length === 0) return `request ${name} has neither exactly nor firstAvailable`
  const ways: RequestAlternative[] = []
  for (const sub of given) {
    const way = compileAlternative(exactly === undefined ? `${name}/${sub.name ?? ''}` : name, sub, classes)
    if (typeof way === 'string') return way
    ways.push(way)
  }
  return { name, ways }
}

function compileAlternative(
  name: string,
  sub: DeviceSubRequest,
  classes: ReadonlyMap<string, DeviceClass>,
): RequestAlternative | string {
  const deviceClass = classes.get(sub.deviceClassName)
  if (deviceClass === undefined)
    return `request ${name} names DeviceClass ${sub.deviceClassName}, which does not exist`
  const selectors: CompiledDeviceSelector[] = []
  for (const { cel, ...others } of [...(deviceClass.spec.selectors ?? []), ...(sub.selectors ?? [])]) {
    const [unknown] = Object.keys(others)
    if (unknown !== undefined)
      return `this version of Tenon does not know field ${unknown} of a selector of request ${name}`
    if (cel === undefined) return `request ${name} has a selector that is not CEL`
    const selector = compileDeviceSelector(cel.expression)
    if (selector.problem !== undefined)
      return `a selector of request ${name} does not compile: ${selector.problem}`
    selectors.push(selector)
  }
  const amounts = Object.entries(sub.capacity?.requests ?? {})
  return {
    name,
    deviceClass: sub.deviceClassName,
    selectors,
    ofClass: (deviceClass.spec.selectors ?? []).length,
    count: sub.allocationMode === 'All' ? undefined : (sub.count ?? 1),
    adminAccess: sub.adminAccess === true,
    tolerations: sub.tolerations ?? [],
    capacity: new Map(amounts.map(([key, amount]): [string, DeviceAmount] => [key, deviceAmount(amount)])),
  }
}

function compileConstraint({
  requests,
  matchAttribute,
  distinctAttribute,
  ...others
}: DeviceConstraint): CompiledConstraint | string {
  const [unknown] = Object.keys(others)
  // A later Kubernetes may mean that the devices must not be taken.
  if (unknown !== undefined) return `this version of Tenon does not know field ${unknown} of a constraint`
  const attribute = matchAttribute ?? distinctAttribute
  if (attribute === undefined) return 'a constraint has neither matchAttribute nor distinctAttribute'
  return {
    kind: matchAttribute === undefined ? 'distinct' : 'match',
    attribute,
    requests: requests === undefined || requests.length === 0 ? undefined : new Set(requests),
  }
}

/** Whether a constraint applies to an alternative of a request. */
export function concerns(
  { requests }: CompiledConstraint,
  { name: request }: CompiledRequest,
  { name }: RequestAlternative,
): boolean {
  return requests === undefined || requests.has(request) || requests.has(name)
}

/** Whether a free device meets a request, and the capacity that it then consumes. */
export type Suitability =
  | { readonly kind: 'suits'; readonly consumed: DeviceAmounts }
  | { readonly kind: 'differs' }
  | { readonly kind: 'failed'; readonly problem: string }

/** Caches which devices meet which requests. Equal devices are checked once. */
export class Suitabilities {
  readonly #answers: SelectorAnswers
  readonly #known = new Map<RequestAlternative, Map<string, Suitability>>()

  constructor(answers: SelectorAnswers) {
    this.#answers = answers
  }

  of(way: RequestAlternative, device: CompiledDevice): Suitability {
    let known = this.#known.get(way)
    if (known === undefined) {
      known = new Map()
      this.#known.set(way, known)
    }
    const key =
      device.taints.length === 0
        ? String(device.selectorClass)
        : `${device.selectorClass} ${device.equivalenceClass}`
    let suitability = known.get(key)
    if (suitability === undefined) {
      suitability = this.#judge(way, device)
      known.set(key, suitability)
    }
    return suitability
  }

  /** Evaluates a selector for a device. */
  answer(selector: CompiledDeviceSelector, device: CompiledDevice): DeviceSelectorAnswer {
    return this.#answers.of(selector, device)
  }

  /** Taints of the device that the request does not tolerate. */
  untolerated({ tolerations }: RequestAlternative, { taints }: CompiledDevice): readonly DeviceTaint[] {
    return taints.filter((taint) => taint.effect !== 'None' && !toleratesDeviceTaint(tolerations, taint))
  }

  #judge(way: RequestAlternative, device: CompiledDevice): Suitability {
    for (const selector of way.selectors) {
      const answer = this.#answers.of(selector, device)
      if (typeof answer === 'object') return { kind: 'failed', problem: answer.problem }
      if (!answer) return { kind: 'differs' }
    }
    if (this.untolerated(way, device).length > 0) return { kind: 'differs' }
    const { driver } = device.pool
    const requests = new Map(
      [...way.capacity].map(([name, amount]) => [name.includes('/') ? name : `${driver}/${name}`, amount]),
    )
    const consumed = consumedCapacity(device.capacity, requests)
    return consumed === undefined ? { kind: 'differs' } : { kind: 'suits', consumed }
  }
}

/** Caches answers of device selectors (devices.md 3.10). Equal devices are evaluated once. */
export class SelectorAnswers {
  readonly #answers = new Map<CompiledDeviceSelector, Map<number, DeviceSelectorAnswer>>()

  of(selector: CompiledDeviceSelector, device: SelectableDevice): DeviceSelectorAnswer {
    let answers = this.#answers.get(selector)
    if (answers === undefined) {
      answers = new Map()
      this.#answers.set(selector, answers)
    }
    let answer = answers.get(device.selectorClass)
    if (answer === undefined) {
      answer = askDeviceSelector(selector, device.source, device.pool.driver)
      answers.set(device.selectorClass, answer)
    }
    return answer
  }
}

interface SelectableDevice {
  readonly selectorClass: number
  readonly source: Device
  readonly pool: { readonly driver: string }
}
