import type { StoredObject } from '../contract.ts'
import type { ServerContext } from './context.ts'
import type { Served } from './registry.ts'
import { invalid } from './status.ts'

/** Services get addresses of 10.96.0.0/16; the first one is the API server's. */
const networkPrefix = '10.96'
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
  readonly ports?: readonly ServicePort[]
  readonly [field: string]: unknown
}

/** Gives a Service its cluster address and node ports; an update keeps those it has. */
export function allocateAddresses(
  ctx: ServerContext,
  served: Served,
  service: StoredObject,
  old?: StoredObject,
): StoredObject {
  const spec = specOf(service)
  if (spec.type === 'ExternalName') return service
  const used = inUse(ctx, service)
  const clusterIP = spec.clusterIP || (old && specOf(old).clusterIP) || freeAddress(used.addresses)
  if (clusterIP !== 'None' && clusterIP !== (old && specOf(old).clusterIP) && used.addresses.has(clusterIP))
    throw invalid(served.definition, service.metadata.name, [
      {
        field: 'spec.clusterIPs',
        kind: 'invalid',
        value: [clusterIP],
        detail: 'failed to allocate IP: provided IP is already allocated',
      },
    ])
  const ports = withNodePorts(spec, old && specOf(old), used.ports)
  return {
    ...service,
    spec: { ...spec, clusterIP, clusterIPs: [clusterIP], ...(ports === undefined ? {} : { ports }) },
  }
}

function specOf(service: StoredObject): ServiceSpec {
  return (service['spec'] ?? {}) as ServiceSpec
}

function inUse(ctx: ServerContext, except: StoredObject): { addresses: Set<string>; ports: Set<number> } {
  const addresses = new Set<string>([apiServiceAddress])
  const ports = new Set<number>()
  if (except.metadata.name === 'kubernetes' && except.metadata.namespace === 'default') addresses.clear()
  ctx.store.collection('services').scan({}, (service) => {
    if (service.metadata.uid === except.metadata.uid) return true
    const spec = specOf(service)
    if (spec.clusterIP !== undefined) addresses.add(spec.clusterIP)
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
  throw new Error('the service network is full')
}

function withNodePorts(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  used: Set<number>,
): readonly ServicePort[] | undefined {
  if (spec.type !== 'NodePort' && spec.type !== 'LoadBalancer') return undefined
  return spec.ports?.map((port, index) => {
    const nodePort = port.nodePort || old?.ports?.[index]?.nodePort || freePort(used)
    used.add(nodePort)
    return { ...port, nodePort }
  })
}

function freePort(used: ReadonlySet<number>): number {
  for (let port = nodePorts.first; port <= nodePorts.last; port++) if (!used.has(port)) return port
  throw new Error('all node ports are taken')
}
