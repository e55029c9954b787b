import type { Loose } from '../columns/cells.ts'
import { each, fill, fillZero, within, withinOrEmpty } from './fill.ts'

const tcp = { protocol: 'TCP' }

function addressDefaults(spec: Loose): Loose {
  if (spec['type'] === 'ExternalName') return spec
  // Endpoints without a selector belong to their writer.
  const isFree = spec['clusterIP'] === 'None' && spec['selector'] === undefined
  const policy: unknown = spec['ipFamilyPolicy'] ?? (isFree ? 'RequireDualStack' : 'SingleStack')
  const ipFamilies = isFree && policy !== 'SingleStack' ? ['IPv4', 'IPv6'] : ['IPv4']
  const given: unknown = spec['ipFamilies']
  const filled = fill(spec, { internalTrafficPolicy: 'Cluster', ipFamilies, ipFamilyPolicy: policy })
  const isHalf = isFree && policy !== 'SingleStack' && Array.isArray(given) && given.length === 1
  return isHalf ? { ...filled, ipFamilies: given[0] === 'IPv6' ? ['IPv6', 'IPv4'] : ipFamilies } : filled
}

/** Removes the configuration if there is no session affinity. */
function affinityDefaults(spec: Loose): Loose {
  const { sessionAffinityConfig: config, ...rest } = spec
  if (spec['sessionAffinity'] === 'None') return config === undefined ? spec : rest
  if (spec['sessionAffinity'] !== 'ClientIP' || config?.clientIP?.timeoutSeconds !== undefined) return spec
  return { ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } }
}

export function serviceDefaults(service: Loose): Loose {
  const filled = within(service, 'spec', (given) => {
    let spec = fill(given, { sessionAffinity: 'None', type: 'ClusterIP' })
    spec = each(spec, 'ports', (port) => fillZero(fill(port, tcp), { targetPort: port['port'] }))
    spec = addressDefaults(spec)
    spec = affinityDefaults(spec)
    const external =
      spec['type'] === 'NodePort' ||
      spec['type'] === 'LoadBalancer' ||
      (spec['type'] === 'ClusterIP' && spec['externalIPs'] !== undefined)
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
  return withinOrEmpty(policy, 'spec', (spec) => {
    const types = spec['egress'] === undefined ? ['Ingress'] : ['Ingress', 'Egress']
    return each(each(fill(spec, { policyTypes: types }), 'ingress', portDefaults), 'egress', portDefaults)
  })
}

export function ingressClassDefaults(ingressClass: Loose): Loose {
  return within(ingressClass, 'spec', (spec) =>
    within(spec, 'parameters', (parameters) => fill(parameters, { scope: 'Cluster' })),
  )
}
