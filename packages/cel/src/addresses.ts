import type { Environment } from '@marcbachmann/cel-js'
import ipaddr from 'ipaddr.js'

type Parsed = ipaddr.IPv4 | ipaddr.IPv6

class CelIp {
  readonly address: Parsed

  constructor(address: Parsed) {
    this.address = address
  }

  get family(): 4 | 6 {
    return this.address.kind() === 'ipv4' ? 4 : 6
  }

  get text(): string {
    return textOf(this.address)
  }

  get bytes(): readonly number[] {
    return this.address.toByteArray()
  }
}

/** A CIDR: an address and the length of its prefix. */
class CelCidr {
  readonly ip: CelIp
  readonly prefix: number

  constructor(ip: CelIp, prefix: number) {
    this.ip = ip
    this.prefix = prefix
  }

  get text(): string {
    return `${this.ip.text}/${this.prefix}`
  }

  contains(ip: CelIp): boolean {
    if (ip.family !== this.ip.family) return false
    return ip.family === 4
      ? (ip.address as ipaddr.IPv4).match(this.ip.address, this.prefix)
      : (ip.address as ipaddr.IPv6).match(this.ip.address, this.prefix)
  }

  masked(): CelCidr {
    const bytes = this.ip.bytes.map((byte, index) => {
      const kept = Math.min(8, Math.max(0, this.prefix - index * 8))
      return byte & (0xff << (8 - kept)) & 0xff
    })
    return new CelCidr(new CelIp(ipaddr.fromByteArray(bytes)), this.prefix)
  }
}

/** The receiver of `ip.isCanonical`. */
class CelIpFunctions {
  readonly name = 'ip'
}

/** The canonical form: lower case, with the longest run of zeros omitted. */
function textOf(address: Parsed): string {
  return address.kind() === 'ipv4' ? address.toString() : (address as ipaddr.IPv6).toRFC5952String()
}

/** The library treats every IPv6 address with an IPv4 suffix as IPv4-mapped. */
function withHexTail(text: string): string {
  if (!text.includes(':')) return text
  return text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_tail, ...bytes: string[]) => {
    const hex = bytes.slice(0, 4).map((byte) => Number(byte).toString(16).padStart(2, '0'))
    return `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`
  })
}

/** Parses an address, or returns why it is invalid. Zones and IPv4-mapped IPv6 addresses are not allowed. */
function parseIp(text: string): CelIp | string {
  if (!ipaddr.IPv4.isValidFourPartDecimal(text) && !ipaddr.IPv6.isValid(text)) {
    return `IP Address ${JSON.stringify(text)} parse error during conversion from string: ParseAddr(${JSON.stringify(text)}): unable to parse IP`
  }
  if (text.includes('%')) return `IP address ${JSON.stringify(text)} with zone value is not allowed`
  const address = ipaddr.parse(withHexTail(text))
  if (address.kind() === 'ipv6' && (address as ipaddr.IPv6).isIPv4MappedAddress()) {
    return `IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`
  }
  return new CelIp(address)
}

function parseCidr(text: string): CelCidr | string {
  const slash = text.lastIndexOf('/')
  const prefix = text.slice(slash + 1)
  const ip = parseIp(text.slice(0, Math.max(0, slash)))
  const isPrefix = /^(?:0|[1-9]\d{0,2})$/.test(prefix) && typeof ip !== 'string'
  if (slash >= 0 && isPrefix && Number(prefix) <= (ip.family === 4 ? 32 : 128)) {
    return new CelCidr(ip, Number(prefix))
  }
  if (typeof ip === 'string' && ip.startsWith('IPv4-mapped')) return ip
  return `network address parse error during conversion from string: netip.ParsePrefix(${JSON.stringify(text)}): bad prefix`
}

function orThrow<T extends object>(parsed: T | string): T {
  if (typeof parsed === 'string') throw new Error(parsed)
  return parsed
}

/** kube-apiserver gives no reason if the invalid address is an argument of a CIDR function. */
function argument<T extends object>(parsed: T | string): T {
  if (typeof parsed === 'string') throw new Error('no such overload')
  return parsed
}

const ipOf = (text: string): CelIp => orThrow(parseIp(text))
const cidrOf = (text: string): CelCidr => orThrow(parseCidr(text))

const startsWith = (ip: CelIp, ...bytes: readonly number[]): boolean =>
  bytes.every((byte, index) => ip.bytes[index] === byte)

const isUnspecified = (ip: CelIp): boolean => ip.bytes.every((byte) => byte === 0)
const isLoopback = (ip: CelIp): boolean => (ip.family === 4 ? startsWith(ip, 127) : ip.text === '::1')
const isMulticast = (ip: CelIp): boolean =>
  ip.family === 4 ? ((ip.bytes[0] ?? 0) & 0xf0) === 0xe0 : startsWith(ip, 0xff)
const isLinkLocalMulticast = (ip: CelIp): boolean =>
  ip.family === 4 ? startsWith(ip, 224, 0, 0) : startsWith(ip, 0xff) && ((ip.bytes[1] ?? 0) & 0x0f) === 0x02
const isLinkLocalUnicast = (ip: CelIp): boolean =>
  ip.family === 4 ? startsWith(ip, 169, 254) : startsWith(ip, 0xfe) && ((ip.bytes[1] ?? 0) & 0xc0) === 0x80
const isGlobalUnicast = (ip: CelIp): boolean =>
  !isUnspecified(ip) &&
  !isLoopback(ip) &&
  !isMulticast(ip) &&
  !isLinkLocalUnicast(ip) &&
  ip.text !== '255.255.255.255'

function containsCidr(cidr: CelCidr, other: CelCidr): boolean {
  return cidr.prefix <= other.prefix && cidr.contains(other.ip)
}

export function registerAddresses(environment: Environment): void {
  const ip = 'net.IP'
  const cidr = 'net.CIDR'
  environment
    .registerType(ip, CelIp)
    .registerType('kubernetes.IPFunctions', CelIpFunctions)
    .registerConstant('ip', 'kubernetes.IPFunctions', new CelIpFunctions())
    .registerFunction(`ip(string): ${ip}`, ipOf)
    .registerFunction('isIP(string): bool', (text: string) => typeof parseIp(text) !== 'string')
    .registerFunction(
      'kubernetes.IPFunctions.isCanonical(string): bool',
      (_functions: CelIpFunctions, text: string) => ipOf(text).text === text,
    )
    .registerFunction(`string(${ip}): string`, (value: CelIp) => value.text)
    .registerFunction(`${ip}.family(): int`, (value: CelIp) => BigInt(value.family))
    .registerFunction(`${ip}.isUnspecified(): bool`, isUnspecified)
    .registerFunction(`${ip}.isLoopback(): bool`, isLoopback)
    .registerFunction(`${ip}.isLinkLocalMulticast(): bool`, isLinkLocalMulticast)
    .registerFunction(`${ip}.isLinkLocalUnicast(): bool`, isLinkLocalUnicast)
    .registerFunction(`${ip}.isGlobalUnicast(): bool`, isGlobalUnicast)
    .registerOperator(`${ip} == ${ip}`, (a: CelIp, b: CelIp) => a.text === b.text)
    .registerType(cidr, CelCidr)
    .registerFunction(`cidr(string): ${cidr}`, cidrOf)
    .registerFunction('isCIDR(string): bool', (text: string) => typeof parseCidr(text) !== 'string')
    .registerFunction(`string(${cidr}): string`, (value: CelCidr) => value.text)
    .registerFunction(`${cidr}.ip(): ${ip}`, (value: CelCidr) => value.ip)
    .registerFunction(`${cidr}.prefixLength(): int`, (value: CelCidr) => BigInt(value.prefix))
    .registerFunction(`${cidr}.masked(): ${cidr}`, (value: CelCidr) => value.masked())
    .registerFunction(`${cidr}.containsIP(${ip}): bool`, (value: CelCidr, other: CelIp) =>
      value.contains(other),
    )
    .registerFunction(`${cidr}.containsIP(string): bool`, (value: CelCidr, other: string) =>
      value.contains(argument(parseIp(other))),
    )
    .registerFunction(`${cidr}.containsCIDR(${cidr}): bool`, containsCidr)
    .registerFunction(`${cidr}.containsCIDR(string): bool`, (value: CelCidr, other: string) =>
      containsCidr(value, cidrOf(other)),
    )
    .registerOperator(`${cidr} == ${cidr}`, (a: CelCidr, b: CelCidr) => a.text === b.text)
}
