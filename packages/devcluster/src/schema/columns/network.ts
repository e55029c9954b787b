import type { TableColumn } from '../../contract.ts'
import { ageColumn, column, formatLabels, formatSelector, type Loose, nameColumn, orElse } from './cells.ts'

function externalIp({ spec, status }: Loose): string {
  const own: readonly string[] = spec?.externalIPs ?? []
  if (spec?.type === 'ExternalName') return orElse(spec.externalName, '<none>')
  const ingress = (status?.loadBalancer?.ingress ?? []).map((one: Loose) => one['ip'] ?? one['hostname'])
  const all = spec?.type === 'LoadBalancer' ? [...ingress, ...own] : own
  if (all.length > 0) return all.join(',')
  return spec?.type === 'LoadBalancer' ? '<pending>' : '<none>'
}

function servicePorts({ spec }: Loose): string {
  const texts = (spec?.ports ?? []).map((port: Loose) =>
    port['nodePort']
      ? `${port['port']}:${port['nodePort']}/${port['protocol']}`
      : `${port['port']}/${port['protocol']}`,
  )
  return texts.length === 0 ? '<none>' : texts.join(',')
}

export const serviceColumns: readonly TableColumn[] = [
  nameColumn,
  column('Type', 'string', ({ spec }) => spec?.type),
  column('Cluster-IP', 'string', ({ spec }) => orElse(spec?.clusterIPs?.[0] ?? spec?.clusterIP, '<none>')),
  column('External-IP', 'string', externalIp),
  column('Port(s)', 'string', servicePorts),
  ageColumn,
  column('Selector', 'string', ({ spec }) => formatLabels(spec?.selector), 1),
]

/** At most three, then how many more. */
function firstFew(texts: readonly string[]): string {
  if (texts.length === 0) return '<none>'
  const more = texts.length > 3 ? ` + ${texts.length - 3} more...` : ''
  return texts.slice(0, 3).join(',') + more
}

function endpointAddresses({ subsets }: Loose): string {
  const texts: string[] = []
  for (const subset of subsets ?? []) {
    for (const { ip } of subset.addresses ?? []) {
      if ((subset.ports ?? []).length === 0) texts.push(ip)
      for (const { port } of subset.ports ?? []) texts.push(`${ip}:${port}`)
    }
  }
  return firstFew(texts)
}

export const endpointsColumns: readonly TableColumn[] = [
  nameColumn,
  column('Endpoints', 'string', endpointAddresses),
  ageColumn,
]

export const endpointSliceColumns: readonly TableColumn[] = [
  nameColumn,
  column('AddressType', 'string', ({ addressType }) => addressType),
  column('Ports', 'string', ({ ports }) => {
    const list = (ports ?? []).map((one: Loose) => String(one['port'] ?? '*'))
    return list.length === 0 ? '<unset>' : firstFew(list)
  }),
  column('Endpoints', 'string', ({ endpoints }) =>
    firstFew((endpoints ?? []).flatMap((one: Loose) => one['addresses'] ?? [])),
  ),
  ageColumn,
]

export const ingressColumns: readonly TableColumn[] = [
  nameColumn,
  column('Class', 'string', ({ metadata, spec }) =>
    orElse(spec?.ingressClassName ?? metadata?.annotations?.['kubernetes.io/ingress.class'], '<none>'),
  ),
  column('Hosts', 'string', ({ spec }) => {
    const hosts = (spec?.rules ?? []).map((rule: Loose) => orElse(rule['host'], '*'))
    return hosts.length === 0 ? '*' : firstFew(hosts)
  }),
  column('Address', 'string', ({ status }) =>
    (status?.loadBalancer?.ingress ?? []).map((one: Loose) => one['ip'] ?? one['hostname']).join(','),
  ),
  column('Ports', 'string', ({ spec }) => ((spec?.tls ?? []).length > 0 ? '80, 443' : '80')),
  ageColumn,
]

export const ingressClassColumns: readonly TableColumn[] = [
  nameColumn,
  column('Controller', 'string', ({ spec }) => spec?.controller),
  column('Parameters', 'string', ({ spec }) => {
    const parameters = spec?.parameters
    if (parameters === undefined) return '<none>'
    return `${parameters.kind}${parameters.apiGroup ? `.${parameters.apiGroup}` : ''}/${parameters.name}`
  }),
  ageColumn,
]

export const networkPolicyColumns: readonly TableColumn[] = [
  nameColumn,
  column('Pod-Selector', 'string', ({ spec }) => formatSelector(spec?.podSelector)),
  ageColumn,
]
