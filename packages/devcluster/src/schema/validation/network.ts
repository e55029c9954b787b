import { isIP, isIPv6 } from 'node:net'
import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { checkPortOrName } from './containers.ts'
import { dnsLabelErrors, nameErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'
import { checkLabelSelector } from './selectors.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

const portRange = 'must be between 1 and 65535, inclusive'
const addressWords = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
const protocols = ['SCTP', 'TCP', 'UDP']

/** Why a text is not a path such as `example.com/controller`; empty if it is. */
function domainPathErrors(text: string): readonly string[] {
  const [domain = '', ...rest] = text.split('/')
  if (rest.length === 0) return ['must be a domain-prefixed path (such as "acme.io/foo")']
  const path = rest.join('/')
  if (path === '') return ['must be a domain-prefixed path (such as "acme.io/foo")']
  const errors = [...nameErrors(domain, 'subdomain')]
  if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(path)) errors.push('Invalid path')
  return errors
}

/** Validates a text such as `example.com/controller`. */
export function checkDomainPath(text: unknown, path: string, found: Findings): void {
  if (text === undefined || text === '') return found.required(path)
  if (typeof text === 'string') for (const words of domainPathErrors(text)) found.invalid(path, text, words)
}

function checkSegment(value: unknown, path: string, found: Findings): void {
  if (value === undefined || value === '') return found.required(path)
  if (typeof value === 'string')
    for (const words of nameErrors(value, 'path')) found.invalid(path, value, words)
}

const wildcard = /^\*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/

function checkHost(host: unknown, path: string, found: Findings): void {
  if (typeof host !== 'string' || host === '') return
  if (isIP(host) !== 0) found.invalid(path, host, 'must be a DNS name, not an IP address')
  if (host.includes('*')) {
    if (!wildcard.test(host)) {
      found.invalid(
        path,
        host,
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain",
      )
    }
    return
  }
  for (const words of nameErrors(host, 'subdomain')) found.invalid(path, host, words)
}

/** An ingress needs a backend and absolute paths. */
export const checkIngress: Check = (object, _old, found) => {
  const spec = (object['spec'] ?? {}) as Loose
  const rules = listOf(spec, 'rules')
  if (rules.length === 0 && spec['defaultBackend'] === undefined) {
    found.invalid('spec', [], 'either `defaultBackend` or `rules` must be specified')
  }
  if (spec['defaultBackend'] !== undefined) checkBackend(spec['defaultBackend'], 'spec.defaultBackend', found)
  for (const [index, rule] of rules.entries()) {
    const at = `spec.rules[${index}]`
    checkHost(rule['host'], `${at}.host`, found)
    if (rule['http'] === undefined) continue
    const paths = listOf(rule['http'], 'paths')
    if (paths.length === 0) found.required(`${at}.http.paths`)
    for (const [position, path] of paths.entries()) checkPath(path, `${at}.http.paths[${position}]`, found)
  }
  for (const [index, tls] of listOf(spec, 'tls').entries()) {
    const at = `spec.tls[${index}]`
    for (const [position, host] of textsOf(tls, 'hosts').entries()) {
      if (host.includes('*')) checkHost(host, `${at}.hosts[${position}]`, found)
      else
        for (const words of nameErrors(host, 'subdomain'))
          found.invalid(`${at}.hosts[${position}]`, host, words)
    }
    const secret: unknown = tls['secretName']
    if (typeof secret !== 'string' || secret === '') continue
    for (const words of nameErrors(secret, 'subdomain')) found.invalid(`${at}.secretName`, secret, words)
  }
  const name: unknown = spec['ingressClassName']
  if (typeof name !== 'string') return
  for (const words of nameErrors(name, 'subdomain')) found.invalid('spec.ingressClassName', name, words)
}

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']

function checkPath(path: Loose, at: string, found: Findings): void {
  const { path: text = '', pathType, backend } = path
  if (pathType === undefined) return found.required(`${at}.pathType`, 'pathType must be specified')
  found.oneOf(`${at}.pathType`, pathType, pathTypes)
  const isFree = pathType === 'ImplementationSpecific'
  if (pathTypes.includes(pathType) && !(isFree && text === '') && !text.startsWith('/')) {
    found.invalid(`${at}.path`, text, 'must be an absolute path')
  }
  if (pathType === 'Exact' || pathType === 'Prefix') {
    for (const part of ['//', '/./', '/../', '%2f', '%2F']) {
      if (text.includes(part)) found.invalid(`${at}.path`, text, `must not contain '${part}'`)
    }
    for (const end of ['/..', '/.']) {
      if (text.endsWith(end)) found.invalid(`${at}.path`, text, `cannot end with '${end}'`)
    }
  }
  checkBackend(backend ?? {}, `${at}.backend`, found)
}

function checkBackend(backend: Loose, path: string, found: Findings): void {
  const { service, resource } = backend
  if (service !== undefined && resource !== undefined) {
    return found.invalid(path, '', 'cannot set both resource and service backends')
  }
  if (resource !== undefined) return checkTypedReference(resource, `${path}.resource`, found)
  if (service === undefined) return found.invalid(path, '', 'resource or service backend is required')
  const name: unknown = service.name
  if (typeof name !== 'string' || name === '') found.required(`${path}.service.name`)
  else for (const words of nameErrors(name, 'label1035')) found.invalid(`${path}.service.name`, name, words)
  const [portName, number] = [service.port?.name, service.port?.number]
  if (portName && number) found.invalid(path, '', 'cannot set both port name & port number')
  else if (portName) checkPortOrName(portName, `${path}.service.port.name`, found)
  else if (number) checkPortOrName(number, `${path}.service.port.number`, found)
  else found.required(path, 'port name or number is required')
}

function checkTypedReference(reference: Loose, path: string, found: Findings): void {
  const { apiGroup, kind, name } = reference
  if (typeof apiGroup === 'string') {
    for (const words of nameErrors(apiGroup, 'subdomain')) found.invalid(`${path}.apiGroup`, apiGroup, words)
  }
  checkSegment(kind, `${path}.kind`, found)
  checkSegment(name, `${path}.name`, found)
}

export const checkIngressClass: Check = (object, _old, found) => {
  const spec = (object['spec'] ?? {}) as Loose
  checkDomainPath(spec['controller'], 'spec.controller', found)
  const parameters: Loose | undefined = spec['parameters']
  if (parameters === undefined) return
  const path = 'spec.parameters'
  checkTypedReference(parameters, path, found)
  const { scope, namespace } = parameters
  found.oneOf(`${path}.scope`, scope, ['Cluster', 'Namespace'])
  if (scope === 'Namespace') {
    if (namespace === undefined)
      found.required(`${path}.namespace`, "`parameters.scope` is set to 'Namespace'")
    else for (const words of dnsLabelErrors(namespace)) found.invalid(`${path}.namespace`, namespace, words)
  }
  if (scope === 'Cluster' && namespace !== undefined) {
    found.forbidden(`${path}.namespace`, "`parameters.scope` is set to 'Cluster'")
  }
}

const cidr = /^([^/]+)\/(\d{1,3})$/

interface Network {
  readonly bits: number
  readonly length: number
  readonly base: bigint
}

function networkOf(text: unknown): Network | undefined {
  const [, address = '', prefix = ''] = typeof text === 'string' ? (cidr.exec(text) ?? []) : []
  const width = isIP(address) === 4 ? 32 : isIPv6(address) ? 128 : 0
  const length = Number(prefix)
  if (width === 0 || length > width) return undefined
  if (width === 128) return { bits: width, length, base: -1n }
  const number = address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  return { bits: width, length, base: number >> BigInt(width - length) }
}

const cidrWords = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

/** Validates a network such as `10.0.0.0/8`. */
export function checkCidr(text: unknown, path: string, found: Findings): void {
  if (networkOf(text) === undefined) found.invalid(path, text, cidrWords)
}

/** Validates ports and peers of a network policy. */
export const checkNetworkPolicy: Check = (object, _old, found) => {
  const spec = (object['spec'] ?? {}) as Loose
  checkLabelSelector(spec['podSelector'], 'spec.podSelector', found)
  for (const [direction, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    for (const [index, rule] of listOf(spec, direction).entries()) {
      const at = `spec.${direction}[${index}]`
      for (const [position, port] of listOf(rule, 'ports').entries()) {
        checkPolicyPort(port, `${at}.ports[${position}]`, found)
      }
      for (const [position, peer] of listOf(rule, peers).entries()) {
        checkPeer(peer, `${at}.${peers}[${position}]`, found)
      }
    }
  }
  const types = textsOf(spec, 'policyTypes')
  if (types.length > 2) found.invalid('spec.policyTypes', types, 'may not specify more than two policyTypes')
  else for (const type of types) found.oneOf('spec.policyTypes', type, ['Egress', 'Ingress'])
}

function checkPolicyPort(port: Loose, path: string, found: Findings): void {
  const { protocol, port: number, endPort } = port
  found.oneOf(`${path}.protocol`, protocol, protocols)
  if (number === undefined) {
    if (endPort === undefined) return
    return found.invalid(`${path}.endPort`, endPort, 'may not be specified when `port` is not specified')
  }
  checkPortOrName(number, `${path}.port`, found)
  if (endPort === undefined) return
  if (typeof number === 'string') {
    found.invalid(`${path}.endPort`, endPort, 'may not be specified when `port` is non-numeric')
  } else if (endPort < number) {
    found.invalid(`${path}.endPort`, endPort, 'must be greater than or equal to `port`')
  } else if (endPort > 65_535) found.invalid(`${path}.endPort`, endPort, portRange)
}

function checkPeer(peer: Loose, path: string, found: Findings): void {
  const { podSelector, namespaceSelector, ipBlock } = peer
  checkLabelSelector(podSelector, `${path}.podSelector`, found)
  checkLabelSelector(namespaceSelector, `${path}.namespaceSelector`, found)
  if (ipBlock !== undefined) checkBlock(ipBlock, `${path}.ipBlock`, found)
  if (podSelector === undefined && namespaceSelector === undefined && ipBlock === undefined) {
    found.required(path, 'must specify a peer')
  } else if (ipBlock !== undefined && (podSelector ?? namespaceSelector) !== undefined) {
    found.forbidden(path, 'may not specify both ipBlock and another peer')
  }
}

function checkBlock(block: Loose, path: string, found: Findings): void {
  const whole = networkOf(block['cidr'])
  if (block['cidr'] === undefined || block['cidr'] === '') return found.required(`${path}.cidr`)
  if (whole === undefined) return found.invalid(`${path}.cidr`, block['cidr'], cidrWords)
  for (const [index, text] of textsOf(block, 'except').entries()) {
    const part = networkOf(text)
    const at = `${path}.except[${index}]`
    if (part === undefined) found.invalid(at, text, cidrWords)
    else if (part.bits !== whole.bits || part.length <= whole.length || !isWithin(part, whole)) {
      found.invalid(at, text, 'must be a strict subset of `cidr`')
    }
  }
}

function isWithin(part: Network, whole: Network): boolean {
  return part.base < 0n || part.base >> BigInt(part.length - whole.length) === whole.base
}

/** Validates an endpoint's address, which must not be local to a host. */
function checkEndpointAddress(address: string, path: string, found: Findings): void {
  if (isIP(address) === 0) return found.invalid(path, address, addressWords)
  const why =
    address.startsWith('127.') || address === '::1'
      ? 'may not be in the loopback range (127.0.0.0/8, ::1/128)'
      : address === '0.0.0.0' || address === '::'
        ? 'may not be unspecified (0.0.0.0 or ::)'
        : address.startsWith('169.254.') || /^fe[89ab]/i.test(address)
          ? 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'
          : undefined
  if (why !== undefined) found.invalid(path, address, why)
}

/** The embedded API server may have a loopback address. */
const isApiServers = ({ metadata: { name, namespace } }: StoredObject): boolean =>
  name === 'kubernetes' && namespace === 'default'

export const checkEndpoints: Check = (object, _old, found) => {
  if (isApiServers(object)) return
  for (const [index, subset] of listOf(object, 'subsets').entries()) {
    const at = `subsets[${index}]`
    const lists = ['addresses', 'notReadyAddresses'] as const
    if (lists.every((list) => listOf(subset, list).length === 0)) {
      found.required(at, 'must specify `addresses` or `notReadyAddresses`')
    }
    for (const list of lists) {
      for (const [position, { ip, hostname }] of listOf(subset, list).entries()) {
        if (typeof ip === 'string') checkEndpointAddress(ip, `${at}.${list}[${position}].ip`, found)
        if (!hostname) continue
        for (const words of dnsLabelErrors(hostname))
          found.invalid(`${at}.${list}[${position}].hostname`, hostname, words)
      }
    }
    const ports = listOf(subset, 'ports')
    for (const [position, { port, name, protocol }] of ports.entries()) {
      const place = `${at}.ports[${position}]`
      if (!name) {
        if (ports.length > 1) found.required(`${place}.name`)
      } else for (const words of dnsLabelErrors(name)) found.invalid(`${place}.name`, name, words)
      if (typeof port === 'number' && (port < 1 || port > 65_535))
        found.invalid(`${place}.port`, port, portRange)
      found.oneOf(`${place}.protocol`, protocol, protocols)
    }
  }
}

export const checkEndpointSlice: Check = (object, _old, found) => {
  if (isApiServers(object)) return
  const type: unknown = object['addressType']
  if (type === undefined || type === '') found.required('addressType')
  else found.oneOf('addressType', type, ['FQDN', 'IPv4', 'IPv6'])
  for (const [index, endpoint] of listOf(object, 'endpoints').entries()) {
    const at = `endpoints[${index}]`
    const addresses = textsOf(endpoint, 'addresses')
    if (addresses.length === 0) found.required(`${at}.addresses`, 'must contain at least 1 address')
    for (const [position, address] of addresses.entries()) {
      const family = isIP(address)
      // An address of the other family is reported without its index.
      if (type !== 'FQDN' && family !== 0 && `IPv${family}` !== type) {
        if (type === 'IPv4' || type === 'IPv6')
          found.invalid(`${at}.addresses`, address, `must be an ${type} address`)
      }
      checkSliceAddress(address, type, `${at}.addresses[${position}]`, found)
    }
    const name: unknown = endpoint['hostname']
    if (typeof name === 'string')
      for (const words of dnsLabelErrors(name)) found.invalid(`${at}.hostname`, name, words)
  }
  const names = new Set<unknown>()
  for (const [index, { name = '', protocol }] of listOf(object, 'ports').entries()) {
    if (name !== '')
      for (const words of dnsLabelErrors(name)) found.invalid(`ports[${index}].name`, name, words)
    if (names.has(name)) found.duplicate(`ports[${index}].name`, name)
    names.add(name)
    found.oneOf(`ports[${index}].protocol`, protocol, protocols)
  }
}

function checkSliceAddress(address: string, type: unknown, path: string, found: Findings): void {
  if (type === 'FQDN') {
    const labels = address.replace(/\.$/, '').split('.')
    for (const words of nameErrors(address.replace(/\.$/, ''), 'subdomain'))
      found.invalid(path, address, words)
    if (labels.length < 2)
      found.invalid(path, address, 'should be a domain with at least two segments separated by dots')
    return
  }
  if (type !== 'IPv4' && type !== 'IPv6') return
  if (isIP(address) === 0) return found.invalid(path, address, addressWords)
  checkEndpointAddress(address, path, found)
}

/** Fields of certain service types only. */
export function checkServiceFields(spec: Loose, found: Findings): void {
  const { type } = spec
  if (type === 'ExternalName') {
    for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) {
      const alias: unknown = field === 'clusterIPs' ? spec['clusterIP'] : undefined
      if (ownValue(spec, field) ?? alias) {
        found.forbidden(`spec.${field}`, 'may not be set for ExternalName services')
      }
    }
  }
  if (spec['clusterIP'] === 'None' && (type === 'LoadBalancer' || type === 'NodePort')) {
    found.invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`)
  }
  checkBalancerFields(spec, found)
  found.oneOf('spec.trafficDistribution', spec['trafficDistribution'], [
    'PreferClose',
    'PreferSameNode',
    'PreferSameZone',
  ])
  for (const [index, address] of textsOf(spec, 'externalIPs').entries()) {
    checkEndpointAddress(address, `spec.externalIPs[${index}]`, found)
  }
  const isFree = spec['clusterIP'] === 'None' && spec['selector'] === undefined
  for (const [index, family] of textsOf(spec, 'ipFamilies').entries()) {
    found.oneOf(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6'])
    if (family === 'IPv6' && !isFree) {
      found.invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster')
    }
  }
}

function checkBalancerFields(spec: Loose, found: Findings): void {
  const isBalanced = spec['type'] === 'LoadBalancer'
  for (const [field, at] of [
    ['loadBalancerSourceRanges', 'LoadBalancerSourceRanges'],
    ['allocateLoadBalancerNodePorts', 'allocateLoadBalancerNodePorts'],
    ['loadBalancerClass', 'loadBalancerClass'],
  ] as const) {
    if (isBalanced || ownValue(spec, field) === undefined) continue
    found.forbidden(`spec.${at}`, "may only be used when `type` is 'LoadBalancer'")
  }
  const balancer: unknown = spec['loadBalancerClass']
  if (isBalanced && typeof balancer === 'string') {
    for (const words of qualifiedNameErrors(balancer))
      found.invalid('spec.loadBalancerClass', balancer, words)
  }
  const hasCheck = isBalanced && spec['externalTrafficPolicy'] === 'Local'
  if (spec['healthCheckNodePort'] && !hasCheck) {
    const words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    found.invalid('spec.healthCheckNodePort', spec['healthCheckNodePort'], words)
  }
  for (const [index, range] of textsOf(spec, 'loadBalancerSourceRanges').entries()) {
    checkCidr(range, `spec.LoadBalancerSourceRanges[${index}]`, found)
  }
}
