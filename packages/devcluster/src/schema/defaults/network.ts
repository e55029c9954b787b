import { createHash } from 'node:crypto'
import type { Loose } from '../columns/cells.ts'
import { each, fill, within } from './fill.ts'

const tcp = { protocol: 'TCP' }

function numberFor(text: string, bound: number): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) % bound
}

/** A cluster IP out of 10.96.0.0/16 that depends on the service's name only. */
function clusterIp(service: Loose): string {
  const { namespace, name } = service['metadata'] ?? {}
  if (namespace === 'default' && name === 'kubernetes') return '10.96.0.1'
  // The first 256 addresses are kept for services with a well-known address.
  const offset = 256 + numberFor(`${namespace}/${name}`, 65_536 - 512)
  return `10.96.${offset >> 8}.${offset & 255}`
}

const firstNodePort = 30_000
const nodePortCount = 2768

function nodePorts(service: Loose, spec: Loose): Loose {
  const { namespace, name } = service['metadata'] ?? {}
  return each(spec, 'ports', (port) =>
    fill(port, {
      nodePort:
        firstNodePort + numberFor(`${namespace}/${name}/${port['port']}/${port['protocol']}`, nodePortCount),
    }),
  )
}

function addressDefaults(service: Loose, spec: Loose): Loose {
  if (spec['type'] === 'ExternalName') return spec
  const address =
    spec['clusterIP'] === undefined || spec['clusterIP'] === '' ? clusterIp(service) : spec['clusterIP']
  const addressed = spec['clusterIP'] === address ? spec : { ...spec, clusterIP: address }
  return fill(addressed, {
    clusterIPs: [address],
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  })
}

export function serviceDefaults(service: Loose): Loose {
  const filled = within(service, 'spec', (given) => {
    let spec = fill(given, { sessionAffinity: 'None', type: 'ClusterIP' })
    spec = each(spec, 'ports', (port) => fill(port, { ...tcp, targetPort: port['port'] }))
    spec = addressDefaults(service, spec)
    if (spec['sessionAffinity'] === 'ClientIP') {
      spec = fill(spec, { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } })
    }
    const external = spec['type'] === 'NodePort' || spec['type'] === 'LoadBalancer'
    if (!external) return spec
    spec = fill(spec, { externalTrafficPolicy: 'Cluster' })
    if (spec['type'] === 'LoadBalancer') spec = fill(spec, { allocateLoadBalancerNodePorts: true })
    return spec['allocateLoadBalancerNodePorts'] === false ? spec : nodePorts(service, spec)
  })
  return fill(filled, { status: { loadBalancer: {} } })
}

export function endpointsDefaults(endpoints: Loose): Loose {
  return each(endpoints, 'subsets', (subset) => each(subset, 'ports', (port) => fill(port, tcp)))
}

export function endpointSliceDefaults(slice: Loose): Loose {
  return each(slice, 'ports', (port) => fill(port, { name: '', ...tcp }))
}

export function networkPolicyDefaults(policy: Loose): Loose {
  const portDefaults = (rule: Loose): Loose => each(rule, 'ports', (port) => fill(port, tcp))
  return within(policy, 'spec', (spec) => {
    const types = spec['egress'] === undefined ? ['Ingress'] : ['Ingress', 'Egress']
    return each(each(fill(spec, { policyTypes: types }), 'ingress', portDefaults), 'egress', portDefaults)
  })
}

export function ingressClassDefaults(ingressClass: Loose): Loose {
  return within(ingressClass, 'spec', (spec) =>
    within(spec, 'parameters', (parameters) => fill(parameters, { scope: 'Cluster' })),
  )
}
