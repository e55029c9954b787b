/** Which proxy to use for a host, by the rules of Go's HTTP clients, so that existing settings still work. */
import { ownValue } from '@tenon/api'
import { type ProviderEnvironment, ProviderSettingError } from '@tenon/provider'
import { BlockList, isIP } from 'node:net'

export interface Proxy {
  readonly url: URL
  /** The variable that names it. */
  readonly variable: string
}

/** How to reach a host. */
export type Route =
  | { readonly kind: 'proxied'; readonly proxy: Proxy }
  /**
   * `excludedBy`: the variable that excludes the host from the configured proxy. `variable`: the one that could name a
   * proxy.
   */
  | { readonly kind: 'direct'; readonly variable: string; readonly excludedBy?: string }

/** @throws ProviderSettingError for an invalid proxy. */
export function routeTo(target: URL, env: ProviderEnvironment): Route {
  const variable = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const named = setting(env, variable)
  if (named === undefined) return { kind: 'direct', variable }
  const proxy = { url: proxyUrl(named), variable: named.name }
  if (isLocal(target)) return { kind: 'direct', variable }
  const exclusions = setting(env, 'NO_PROXY')
  return exclusions !== undefined && exclusions.value.split(',').some((entry) => isExcluded(target, entry))
    ? { kind: 'direct', variable, excludedBy: exclusions.name }
    : { kind: 'proxied', proxy }
}

interface Setting {
  readonly name: string
  readonly value: string
}

/** The upper-case variable takes precedence. */
function setting(env: ProviderEnvironment, variable: string): Setting | undefined {
  for (const name of [variable, variable.toLowerCase()]) {
    const value = (ownValue(env, name) ?? '').trim()
    if (value !== '') return { name, value }
  }
  return undefined
}

/** Errors do not contain the value, as it may have a password. */
function proxyUrl({ name, value }: Setting): URL {
  const text = value.includes('://') ? value : `http://${value}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.hostname !== '') return url
  const what = url === undefined ? 'no URL' : `a proxy of the kind ${url.protocol.slice(0, -1)}`
  throw new ProviderSettingError(
    `${name} names ${what}: set it to the URL of an HTTP or HTTPS proxy, for example http://proxy.example.com:3128`,
    name,
  )
}

function hostOf({ hostname }: URL): string {
  return hostname
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase()
    .replace(/\.$/, '')
}

function isLocal(target: URL): boolean {
  const host = hostOf(target)
  return host === 'localhost' || (isIP(host) === 4 && host.startsWith('127.')) || host === '::1'
}

/** An entry of NO_PROXY: `*`, a network, an address or a domain, the last two with an optional port. */
function isExcluded(target: URL, entry: string): boolean {
  const text = entry.trim().toLowerCase()
  if (text === '' || text === '*') return text === '*'
  const host = hostOf(target)
  if (text.includes('/')) return isIP(host) !== 0 && isInNetwork(host, text)
  const { name, port } = splitPort(text)
  if (port !== undefined && port !== (target.port || (target.protocol === 'https:' ? '443' : '80')))
    return false
  if (isIP(name) !== 0) return isIP(host) !== 0 && isInNetwork(host, `${name}/${isIP(name) === 4 ? 32 : 128}`)
  const domain = name.replace(/^\*\./, '.').replace(/\.$/, '')
  return domain !== '' && (domain.startsWith('.') ? host.endsWith(domain) : isWithin(host, domain))
}

/** A domain includes its subdomains. */
function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`)
}

function isInNetwork(address: string, network: string): boolean {
  const [base = '', bits = ''] = network.split('/')
  const family = isIP(base) === 6 ? 'ipv6' : 'ipv4'
  const prefix = Number(bits)
  if (isIP(base) === 0 || !/^\d+$/.test(bits) || prefix > (family === 'ipv6' ? 128 : 32)) return false
  const list = new BlockList()
  list.addSubnet(base, prefix, family)
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** `[::1]:443`, `::1`, `host:443` and `host`. */
function splitPort(text: string): { readonly name: string; readonly port?: string } {
  const bracketed = /^\[([^\]]*)\](?::(\d+))?$/.exec(text)
  if (bracketed !== null)
    return { name: bracketed[1] ?? '', ...(bracketed[2] === undefined ? {} : { port: bracketed[2] }) }
  const [name = '', port, ...more] = text.split(':')
  return port === undefined || more.length > 0 ? { name: text } : { name, port }
}
