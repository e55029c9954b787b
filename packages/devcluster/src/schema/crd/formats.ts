import { ownValue } from '@tenon/api'
import { isIP } from 'node:net'

const dateTime = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:?\d{2})$/
const date = /^\d{4}-\d{2}-\d{2}$/
const duration = /^[+-]?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$|^[+-]?0$/
const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i
const hostname =
  /^(?=.{1,253}$)(?:[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*\.?$/
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const label = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/

function isCidr(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || bits === undefined || !/^\d{1,3}$/.test(bits)) return false
  return Number(bits) <= (version === 4 ? 32 : 128)
}

function isUri(text: string): boolean {
  return URL.canParse(text) || text.startsWith('/')
}

const formats: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) => dateTime.test(text) && !Number.isNaN(Date.parse(text)),
  date: (text) => date.test(text) && !Number.isNaN(Date.parse(text)),
  duration: (text) => duration.test(text),
  uuid: (text) => uuid.test(text),
  uuid3: (text) => uuid.test(text),
  uuid4: (text) => uuid.test(text),
  uuid5: (text) => uuid.test(text),
  hostname: (text) => hostname.test(text),
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6,
  ip: (text) => isIP(text) !== 0,
  cidr: isCidr,
  mac: (text) => /^(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i.test(text),
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: isUri,
  byte: (text) => base64.test(text),
  'k8s-short-name': (text) => text.length <= 63 && label.test(text),
  'k8s-long-name': (text) => text.length <= 253 && subdomain.test(text),
}

/** Whether the text has the format; unknown formats match every text. */
export function hasFormat(format: string, text: string): boolean {
  return ownValue(formats, format)?.(text) ?? true
}

/** Range of the integer formats. */
export function fitsIntegerFormat(format: string, value: number): boolean {
  return format !== 'int32' || (value >= -2_147_483_648 && value <= 2_147_483_647)
}
