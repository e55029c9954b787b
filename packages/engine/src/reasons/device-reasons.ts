/** Words for claims that have no devices. */
import { taintText } from '@tenon/api'
import type { DeviceRefusal } from '../scheduling/devices/device-room.ts'
import type { ClaimShortage, WayShortage } from '../scheduling/devices/shortage.ts'

const shownTypes = 5

/** What a claim lacks, and what to do. */
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

function missing(why: WayShortage): string {
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

function remedy(why: WayShortage): string {
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
}: (WayShortage & { kind: 'taints' })['taints'][number]): string {
  return effect === 'None' ? key : taintText({ key, value, effect })
}
