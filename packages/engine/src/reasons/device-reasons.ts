/** Why a ResourceClaim gets no devices, as data and as text. */
import { type DeviceTaint, taintText } from '@tenon/api'

/** Why one alternative of a request has no device. */
export type AlternativeShortage =
  /** No device is of the class. */
  | { readonly kind: 'class'; readonly deviceClass: string }
  /**
   * No device of the class matches these selectors; `problem`: why the first selector cannot be evaluated.
   */
  | {
      readonly kind: 'selectors'
      readonly deviceClass: string
      readonly expressions: readonly string[]
      readonly problem?: string
    }
  /** All matching devices have taints that the request does not tolerate. */
  | { readonly kind: 'taints'; readonly taints: readonly DeviceTaint[] }
  /** Quantities. `most` is absent when no device has such a capacity. */
  | { readonly kind: 'capacity'; readonly name: string; readonly asked: string; readonly most?: string }
  /** `most`: matching devices on the node that has the most. */
  | { readonly kind: 'count'; readonly asked: number; readonly most: number }
  /** The request is for all devices, but this pool is incomplete or invalid, so their number is unknown. */
  | { readonly kind: 'pool'; readonly driver: string; readonly pool: string; readonly problem?: string }
  /** Only these types have such devices, and other rules exclude these types for the pod. */
  | { readonly kind: 'otherTypes'; readonly instanceTypes: readonly string[] }

export type ClaimShortage =
  /** No alternative of a request (`request`, or `request/subrequest`) can be met. */
  | {
      readonly kind: 'request'
      readonly ways: readonly { readonly request: string; readonly why: AlternativeShortage }[]
    }
  /** There are devices for each request, but not for all requests at once. */
  | { readonly kind: 'together' }

/** Why a node or claim cannot provide the devices of a pod. */
export interface DeviceRefusal {
  readonly kind: 'refused'
  /** The ResourceClaim, as `namespace/name`. */
  readonly claim: string
  readonly because:
    | { readonly kind: 'problem'; readonly problem: string }
    /** It is allocated, and its devices are not accessible from here. */
    | { readonly kind: 'elsewhere' }
    /** `shortage` is only computed for a report. */
    | { readonly kind: 'noDevices'; readonly shortage?: ClaimShortage }
    | { readonly kind: 'tooManySteps' }
}

const shownTypes = 5

export function deviceWords(because: DeviceRefusal['because']): string {
  switch (because.kind) {
    case 'problem':
      return `${because.problem}; correct the claim, or create what it names`
    case 'elsewhere':
      return 'it has devices that the nodes which suit the pod do not reach; free the claim, or let the pod follow it'
    case 'noDevices':
      return because.shortage === undefined
        ? 'no node, and no instance type that suits the pod, has free devices for it; ' +
            'loosen its selectors and constraints, or allow instance types with such devices'
        : shortageWords(because.shortage)
    case 'tooManySteps':
      return (
        'the search for its devices was given up after too many steps; ' +
        'use fewer requests and constraints in one claim'
      )
  }
}

function shortageWords(shortage: ClaimShortage): string {
  if (shortage.kind === 'together')
    return (
      'no node, and no instance type that suits the pod, has free devices for all of its requests together, although ' +
      'some have such devices; loosen its constraints, free devices, or allow instance types with more of them'
    )
  const whys = shortage.ways.map(({ request, why }) => `request ${request}: ${missing(why)}`)
  const [first] = shortage.ways
  return `${whys.join('; ')}; ${first === undefined ? '' : remedy(first.why)}`
}

function missing(why: AlternativeShortage): string {
  switch (why.kind) {
    case 'class':
      return `no node, and no instance type that suits the pod, has a device of DeviceClass ${why.deviceClass}`
    case 'selectors': {
      const meets = why.expressions.join(' && ')
      const failed = why.problem === undefined ? '' : ` (it cannot be evaluated: ${why.problem})`
      return `no free or buyable device of DeviceClass ${why.deviceClass} meets its selector ${meets}${failed}`
    }
    case 'taints':
      return `all devices that it selects have taints (${why.taints.map(deviceTaintText).join(', ')})`
    case 'capacity':
      return why.most === undefined
        ? `it asks for capacity ${why.name}, which no device that it selects has`
        : `it asks for ${why.asked} of capacity ${why.name}, and the devices that it selects allow no such amount (they have ${why.most} at most)`
    case 'count':
      return `it asks for ${why.asked} devices of one node, and no node has more than ${why.most} such`
    case 'pool':
      return (
        `it asks for all devices, and pool ${why.pool} of driver ${why.driver} ` +
        (why.problem === undefined ? 'is not published completely yet' : `cannot be used: ${why.problem}`)
      )
    case 'otherTypes': {
      const rest = why.instanceTypes.length - shownTypes
      const names = `${why.instanceTypes.slice(0, shownTypes).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
      return `only instance types that do not suit the pod otherwise have its devices (${names})`
    }
  }
}

function remedy(why: AlternativeShortage): string {
  switch (why.kind) {
    case 'class':
      return 'allow instance types with such devices'
    case 'selectors':
      return 'loosen the selector, or allow instance types with such devices'
    case 'taints':
      return 'tolerate the taints in the request, or repair the devices'
    case 'capacity':
      return 'ask for less, or allow instance types with larger devices'
    case 'count':
      return 'ask for fewer, or allow instance types with more of them'
    case 'pool':
      return 'see the driver of these devices'
    case 'otherTypes':
      return "widen the pod's requirements, or those of the NodePools"
  }
}

function deviceTaintText({
  key,
  value = '',
  effect,
}: (AlternativeShortage & { kind: 'taints' })['taints'][number]): string {
  return effect === 'None' ? key : taintText({ key, value, effect })
}
