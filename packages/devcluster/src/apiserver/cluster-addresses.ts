import { isIP } from 'node:net'
import { ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../contract.ts'
import type { ServerContext } from './context.ts'
import { sameJson } from './equality.ts'
import type { Served } from './kinds/registry.ts'
import { internalError, invalid } from './http/status.ts'

/** Services get addresses of 10.96.0.0/16; the first one is that of the API server. */
const networkPrefix = '10.96'
const network = `${networkPrefix}.0.0/16`
export const apiServiceAddress = `${networkPrefix}.0.1`
const addressCount = 65_534
const firstDynamicAddress = 10
const nodePorts = { first: 30_000, last: 32_767 }

interface ServicePort {
  readonly nodePort?: number
  readonly [field: string]: unknown
}

interface ServiceSpec {
  readonly type?: string
  readonly clusterIP?: string
  readonly clusterIPs?: readonly string[]
  readonly ports?: readonly ServicePort[]
  readonly externalTrafficPolicy?: string
  readonly allocateLoadBalancerNodePorts?: boolean
  readonly healthCheckNodePort?: number
  readonly loadBalancerClass?: string
  readonly [field: string]: unknown
}

/**
 * Fields that a Service of each type needs. When the type changes, fields that it no longer needs are removed.
 */
const needs = {
  clusterAddress: (spec: ServiceSpec) => spec.type !== 'ExternalName',
  nodePorts: (spec: ServiceSpec) =>
    spec.type === 'NodePort' ||
    (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false),
  trafficPolicy: (spec: ServiceSpec) => spec.type === 'NodePort' || spec.type === 'LoadBalancer',
  healthCheck: (spec: ServiceSpec) => spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local',
  loadBalancer: (spec: ServiceSpec) => spec.type === 'LoadBalancer',
}

/**
 * Assigns a cluster IP and node ports to a Service; an update keeps existing ones.
 * @throws ApiError 422 if a requested address or port is not available.
 */
export function allocateAddresses(
  ctx: ServerContext,
  served: Served,
  service: StoredObject,
  old?: StoredObject,
): StoredObject {
  const before = old && specOf(old)
  let spec = before === undefined ? specOf(service) : withoutOutlived(specOf(service), before)
  const used = inUse(ctx, service)
  const errors: FieldError[] = []
  if (needs.clusterAddress(spec)) spec = withClusterAddress(spec, before, used.addresses, errors)
  if (spec.ports !== undefined) spec = withNodePorts(spec, spec.ports, before, used.ports, errors)
  if (needs.healthCheck(spec) && !spec.healthCheckNodePort)
    spec = { ...spec, healthCheckNodePort: before?.healthCheckNodePort || freePort(used.ports) }
  if (errors.length > 0) throw invalid(served.definition, service.metadata.name, errors)
  return { ...service, spec }
}

function specOf(service: StoredObject): ServiceSpec {
  return (service['spec'] ?? {}) as ServiceSpec
}

/** Removes fields of the old type that the new type does not need, unless the client changed them. */
function withoutOutlived(spec: ServiceSpec, before: ServiceSpec): ServiceSpec {
  const outlived = (need: (spec: ServiceSpec) => boolean) => need(before) && !need(spec)
  const gone = new Set<string>()
  const drop = (field: string) => {
    if (ownValue(spec, field) === ownValue(before, field)) gone.add(field)
  }
  if (outlived(needs.clusterAddress) && spec.clusterIP === before.clusterIP) {
    gone.add('clusterIP')
    gone.add('clusterIPs')
    for (const field of ['ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy']) {
      if (sameJson(ownValue(spec, field), ownValue(before, field))) gone.add(field)
    }
  }
  if (outlived(needs.trafficPolicy)) drop('externalTrafficPolicy')
  if (outlived(needs.healthCheck)) drop('healthCheckNodePort')
  if (outlived(needs.loadBalancer)) {
    drop('allocateLoadBalancerNodePorts')
    drop('loadBalancerClass')
  }
  const kept: ServiceSpec = Object.fromEntries(Object.entries(spec).filter(([field]) => !gone.has(field)))
  if (!outlived(needs.nodePorts) || spec.ports === undefined) return kept
  const ports = spec.ports.map((port, index): ServicePort => {
    const { nodePort, ...rest } = port
    return nodePort === before.ports?.[index]?.nodePort ? rest : port
  })
  return { ...kept, ports }
}

function withClusterAddress(
  spec: ServiceSpec,
  before: ServiceSpec | undefined,
  used: ReadonlySet<string>,
  errors: FieldError[],
): ServiceSpec {
  const own = before?.clusterIP
  const clusterIP = spec.clusterIP || spec.clusterIPs?.[0] || own || freeAddress(used)
  if (clusterIP !== 'None' && isIP(clusterIP) === 0) {
    const detail = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    errors.push({ field: 'spec.clusterIPs[0]', kind: 'invalid', value: clusterIP, detail })
  } else if (clusterIP !== 'None' && clusterIP !== own) {
    const problem = addressProblem(clusterIP, used)
    if (problem !== undefined)
      errors.push({
        field: 'spec.clusterIPs',
        kind: 'invalid',
        value: [clusterIP],
        detail: `failed to allocate IP ${clusterIP}: ${problem}`,
      })
  }
  return { ...spec, clusterIP, clusterIPs: [clusterIP] }
}

function addressProblem(address: string, used: ReadonlySet<string>): string | undefined {
  if (!address.startsWith(`${networkPrefix}.`))
    return `the provided IP (${address}) is not in the valid range. The range of valid IPs is ${network}`
  return used.has(address) ? 'provided IP is already allocated' : undefined
}

function inUse(ctx: ServerContext, except: StoredObject): { addresses: Set<string>; ports: Set<number> } {
  const addresses = new Set<string>([apiServiceAddress])
  const ports = new Set<number>()
  if (except.metadata.name === 'kubernetes' && except.metadata.namespace === 'default') addresses.clear()
  ctx.store.collection('services').scan({}, (service) => {
    if (service.metadata.uid === except.metadata.uid) return true
    const spec = specOf(service)
    if (spec.clusterIP !== undefined) addresses.add(spec.clusterIP)
    if (spec.healthCheckNodePort !== undefined) ports.add(spec.healthCheckNodePort)
    for (const port of spec.ports ?? []) if (port.nodePort !== undefined) ports.add(port.nodePort)
    return true
  })
  return { addresses, ports }
}

function freeAddress(used: ReadonlySet<string>): string {
  for (let index = firstDynamicAddress; index < addressCount; index++) {
    const address = `${networkPrefix}.${index >> 8}.${index & 255}`
    if (!used.has(address)) return address
  }
  throw internalError('failed to allocate a serviceIP: range is full')
}

/** Keeps requested ports, then those that the Service had for the same port; draws others at random. */
function withNodePorts(
  spec: ServiceSpec,
  ports: readonly ServicePort[],
  before: ServiceSpec | undefined,
  used: Set<number>,
  errors: FieldError[],
): ServiceSpec {
  if (!needs.trafficPolicy(spec)) return spec
  const known = new Map((before?.ports ?? []).map((port) => [identity(port), port.nodePort]))
  const own = new Set<number | undefined>(known.values())
  const taken = new Set<number>(used)
  for (const [index, { nodePort }] of ports.entries()) {
    if (!nodePort) continue
    if (used.has(nodePort) && !own.has(nodePort))
      errors.push({
        field: `spec.ports[${index}].nodePort`,
        kind: 'invalid',
        value: nodePort,
        detail: 'provided port is already allocated',
      })
    taken.add(nodePort)
  }
  const given = ports.map((port): ServicePort => {
    if (port.nodePort || !needs.nodePorts(spec)) return port
    const kept = known.get(identity(port))
    const nodePort = kept !== undefined && !taken.has(kept) ? kept : freePort(taken)
    taken.add(nodePort)
    return { ...port, nodePort }
  })
  for (const port of taken) used.add(port)
  return { ...spec, ports: given }
}

function identity(port: ServicePort): string {
  return `${String(port['port'])}/${String(port['protocol'] ?? 'TCP')}`
}

function freePort(used: ReadonlySet<number>): number {
  for (let port = nodePorts.first; port <= nodePorts.last; port++) if (!used.has(port)) return port
  throw internalError('failed to allocate a nodePort: range is full')
}
