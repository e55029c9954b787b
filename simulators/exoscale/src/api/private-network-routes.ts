import { isIPv4 } from 'node:net'
import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { CloudState, PrivateNetwork } from '../zone/cloud-state.ts'
import type { Instance, PrivateNetworkLink } from '../instances/instance.ts'
import { failed, succeeded } from '../instances/operation-outcome.ts'
import { invalid, notFound, refused } from './refusal.ts'
import type { RouteParts } from './route-parts.ts'

/** Private networks with attach and detach. */
export function privateNetworkRoutes(parts: RouteParts): Route[] {
  const { state } = parts.context
  return [
    {
      operation: 'list-private-networks',
      method: 'GET',
      path: '/private-network',
      handle: () => ({
        'private-networks': [...state.privateNetworks.values()].map((network) => networkView(state, network)),
      }),
    },
    {
      operation: 'get-private-network',
      method: 'GET',
      path: '/private-network/{id}',
      handle: (call) => networkView(state, networkOf(state, call)),
    },
    {
      operation: 'attach-instance-to-private-network',
      method: 'PUT',
      path: '/private-network/{id}:attach',
      body: 'required',
      handle: (call) => attach(parts, call),
    },
    {
      operation: 'detach-instance-from-private-network',
      method: 'PUT',
      path: '/private-network/{id}:detach',
      body: 'required',
      handle: (call) => detach(parts, call),
    },
  ]
}

function networkOf(state: CloudState, call: Call): PrivateNetwork {
  const id = call.parameters['id'] ?? ''
  const network = state.privateNetworks.get(id)
  if (network === undefined) throw notFound('private-network', id)
  return network
}

function networkView(state: CloudState, network: PrivateNetwork) {
  const { id, name, description, vni, range } = network
  const addresses =
    range === undefined
      ? {}
      : {
          'start-ip': range.startIp,
          'end-ip': range.endIp,
          netmask: range.netmask,
          leases: leases(state, id),
        }
  return { id, name, description, vni, labels: {}, ...addresses }
}

function leases(state: CloudState, networkId: string) {
  return state.instances
    .values()
    .flatMap((instance) =>
      instance.privateNetworks
        .filter((link) => link.id === networkId && link.ip !== undefined)
        .map((link) => ({ ip: link.ip ?? '', 'instance-id': instance.id })),
    )
}

function attach({ context, operations }: RouteParts, call: Call) {
  const { state } = context
  const network = networkOf(state, call)
  const { instance, ip } = membershipOf(call, state, network)
  if (linkOf(instance, network) !== undefined) {
    throw refused(409, `instance ${instance.id} is already attached to private network ${network.id}`)
  }
  return operations.start({
    ...planOf(call, network),
    instance,
    complete: () => {
      if (instance.state === 'destroyed') return failed('not-found', `instance ${instance.id} not found`)
      if (linkOf(instance, network) !== undefined) return succeeded
      const link = newLink(state, network, instance, ip)
      if (link === undefined)
        return failed('unavailable', `private network ${network.id} has no address left`)
      instance.privateNetworks = [...instance.privateNetworks, link]
      return succeeded
    },
  })
}

function detach({ context, operations }: RouteParts, call: Call) {
  const network = networkOf(context.state, call)
  const { instance } = membershipOf(call, context.state, network)
  if (linkOf(instance, network) === undefined) {
    throw refused(409, `instance ${instance.id} is not attached to private network ${network.id}`)
  }
  return operations.start({
    ...planOf(call, network),
    instance,
    complete: () => {
      instance.privateNetworks = instance.privateNetworks.filter((link) => link.id !== network.id)
      return succeeded
    },
  })
}

function membershipOf(call: Call, state: CloudState, network: PrivateNetwork) {
  const body = new BodyReader(call.body)
  const instanceId = body.requiredReference('instance')
  const ip = body.string('ip', { min: 7, max: 15 })
  body.finish()
  const instance = state.instances.get(instanceId)
  if (instance === undefined) throw notFound('instance', instanceId)
  if (ip === undefined) return { instance, ip }
  if (!isIPv4(ip)) throw invalid(['ip must be an IPv4 address'])
  if (network.range === undefined) throw invalid([`private network ${network.id} has no address range`])
  if (leases(state, network.id).some((lease) => lease.ip === ip))
    throw refused(409, `${ip} is already leased`)
  return { instance, ip }
}

function newLink(
  state: CloudState,
  { id, range, vni }: PrivateNetwork,
  instance: Instance,
  asked: string | undefined,
): PrivateNetworkLink | undefined {
  const taken = new Set(leases(state, id).map((lease) => lease.ip))
  const ip = asked ?? (range === undefined ? undefined : nextFreeIp(range.startIp, range.endIp, taken))
  if (range !== undefined && ip === undefined) return undefined
  // The locally administered prefix 0a differs from that of public interfaces.
  const hex = (vni % 256).toString(16).padStart(2, '0')
  return { id, ip, macAddress: `0a:${hex}:${instance.macAddress.slice(6)}` }
}

function linkOf(instance: Instance, network: PrivateNetwork): PrivateNetworkLink | undefined {
  return instance.privateNetworks.find((link) => link.id === network.id)
}

function planOf(call: Call, { id }: PrivateNetwork) {
  const reference = { id, command: 'get-private-network', path: `/private-network/${id}` }
  return { operation: call.operation, effects: call.effects, reference }
}

/** The lowest free address from `start` to `end`. */
function nextFreeIp(start: string, end: string, taken: ReadonlySet<string>): string | undefined {
  for (let number = numberOf(start); number <= numberOf(end); number++) {
    const address = addressOf(number)
    if (!taken.has(address)) return address
  }
  return undefined
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.')
}
