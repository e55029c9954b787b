import type { Loose } from '../columns/cells.ts'
import { each, fill, within } from './fill.ts'

const tcp = { protocol: 'TCP' }

function addressDefaults(spec: Loose): Loose {
  if (spec['type'] === 'ExternalName') return spec
  const families = { internalTrafficPolicy: 'Cluster', ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' }
  return fill(spec, families)
}

export function serviceDefaults(service: Loose): Loose {
  const filled = within(service, 'spec', (given) => {
    let spec = fill(given, { sessionAffinity: 'None', type: 'ClusterIP' })
    spec = each(spec, 'ports', (port) => fill(port, { ...tcp, targetPort: port['port'] }))
    spec = addressDefaults(spec)
    if (spec['sessionAffinity'] === 'ClientIP') {
      spec = fill(spec, { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } })
    }
    const external = spec['type'] === 'NodePort' || spec['type'] === 'LoadBalancer'
    if (!external) return spec
    spec = fill(spec, { externalTrafficPolicy: 'Cluster' })
    return spec['type'] === 'LoadBalancer' ? fill(spec, { allocateLoadBalancerNodePorts: true }) : spec
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
