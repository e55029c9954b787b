/**
 * Where traces go, from the environment variables that OpenTelemetry defines (adoption.md 4). A value that cannot be used is
 * reported and replaced by the default: no trace is worth a controller that does not run.
 */
import { ownValue } from '@tenon/api'

type Env = Readonly<Record<string, string | undefined>>

export interface TracingSettings {
  /** Of the receiver's traces, with its path. */
  readonly url: string
  readonly protocol: 'http/protobuf' | 'http/json'
  /** May hold credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** How long spans are collected before they are sent. */
  readonly delayMs: number
  readonly sampler: Sampler
  /** Of the resource, such as `service.name`. */
  readonly attributes: Readonly<Record<string, string>>
}

/** Which traces are sent. */
type Sampler = 'all' | 'none' | { readonly ratio: number }

/** Problems are sentences that name the variable, and never a header's value. */
export interface ReadTracing {
  /** Undefined: nothing is traced. */
  readonly settings?: TracingSettings
  readonly problems: readonly string[]
}

const defaultTimeoutMs = 10_000
const defaultDelayMs = 5000
const longestMs = 10 * 60_000
const samplers = ['always_on', 'always_off', 'traceidratio'] as const

/** @param serviceName name of this program, unless the environment gives one. */
export function tracingSettings(env: Env, serviceName: string): ReadTracing {
  const problems: string[] = []
  const base = valueOf(env, 'OTEL_EXPORTER_OTLP_ENDPOINT')
  const own = valueOf(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  const endpoint = own ?? base
  if (endpoint === undefined || isDisabled(env, problems)) return { problems }
  const variable = own === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  const url = urlOf(endpoint, own === undefined)
  if (url === undefined) {
    problems.push(`${variable} is no URL that begins with http:// or https://: nothing is traced`)
    return { problems }
  }
  const headers = {
    ...pairsOf(env, 'OTEL_EXPORTER_OTLP_HEADERS', isHeader, problems),
    ...pairsOf(env, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', isHeader, problems),
  }
  const attributes = pairsOf(env, 'OTEL_RESOURCE_ATTRIBUTES', () => true, problems)
  const named = valueOf(env, 'OTEL_SERVICE_NAME') ?? attributes['service.name'] ?? serviceName
  const settings: TracingSettings = {
    url,
    protocol: protocolOf(env, problems),
    headers,
    timeoutMs:
      milliseconds(env, 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', problems) ??
      milliseconds(env, 'OTEL_EXPORTER_OTLP_TIMEOUT', problems) ??
      defaultTimeoutMs,
    delayMs: milliseconds(env, 'OTEL_BSP_SCHEDULE_DELAY', problems) ?? defaultDelayMs,
    sampler: samplerOf(env, problems),
    attributes: { ...attributes, 'service.name': named },
  }
  return { settings, problems }
}

/** Empty counts as not set. */
function valueOf(env: Env, name: string): string | undefined {
  const text = ownValue(env, name)?.trim() ?? ''
  return text === '' ? undefined : text
}

function isDisabled(env: Env, problems: string[]): boolean {
  const disabled = valueOf(env, 'OTEL_SDK_DISABLED')?.toLowerCase() ?? 'false'
  if (disabled !== 'true' && disabled !== 'false')
    problems.push(`OTEL_SDK_DISABLED=${disabled}: use true or false; it counts as false`)
  const exporter = valueOf(env, 'OTEL_TRACES_EXPORTER') ?? 'otlp'
  if (exporter !== 'otlp' && exporter !== 'none')
    problems.push(`OTEL_TRACES_EXPORTER=${exporter}: use otlp or none; it counts as otlp`)
  return disabled === 'true' || exporter === 'none'
}

/** @param isBase whether the path of traces is appended. */
function urlOf(text: string, isBase: boolean): string | undefined {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return undefined
  if (isBase) url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`
  return url.href
}

function protocolOf(env: Env, problems: string[]): TracingSettings['protocol'] {
  const own = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
  const name = valueOf(env, own) === undefined ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : own
  const text = valueOf(env, name) ?? 'http/protobuf'
  if (text === 'http/protobuf' || text === 'http/json') return text
  problems.push(
    `${name}=${text}: use http/protobuf or http/json, and the receiver's port for them, such as 4318; http/protobuf is used`,
  )
  return 'http/protobuf'
}

/** `name=value` pairs, percent-encoded and separated by commas. */
function pairsOf(
  env: Env,
  name: string,
  isValid: (key: string, value: string) => boolean,
  problems: string[],
): Readonly<Record<string, string>> {
  const pairs: [string, string][] = []
  for (const part of (valueOf(env, name) ?? '').split(',')) {
    if (part.trim() === '') continue
    const at = part.indexOf('=')
    const key = part.slice(0, Math.max(at, 0)).trim()
    const value = decoded(part.slice(at + 1).trim())
    if (key === '' || value === undefined || !isValid(key, value)) {
      const which = key === '' ? 'a part without a name' : JSON.stringify(key.slice(0, 64))
      problems.push(`${name}: ${which} is left out: use name=value pairs, percent-encoded, between commas`)
      continue
    }
    pairs.push([key, value])
  }
  return Object.fromEntries(pairs)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Whether HTTP allows the header. */
function isHeader(key: string, value: string): boolean {
  return /^[!#$%&'*+\-.^_`|~\w]+$/.test(key) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

function milliseconds(env: Env, name: string, problems: string[]): number | undefined {
  const text = valueOf(env, name)
  if (text === undefined) return undefined
  const ms = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (ms >= 1 && ms <= longestMs) return ms
  problems.push(`${name}=${text.slice(0, 64)}: use milliseconds from 1 to ${longestMs}; the default is used`)
  return undefined
}

function samplerOf(env: Env, problems: string[]): Sampler {
  const text = valueOf(env, 'OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  // Nothing calls Tenon, so only roots are sampled: whether parents count makes no difference.
  const name = samplers.find((each) => each === text.replace(/^parentbased_/, ''))
  if (name === undefined) {
    const all = samplers.flatMap((each) => [each, `parentbased_${each}`]).join(', ')
    problems.push(`OTEL_TRACES_SAMPLER=${text.slice(0, 64)}: use one of ${all}; all traces are sent`)
  }
  if (name === 'always_off') return 'none'
  if (name !== 'traceidratio') return 'all'
  const ratioText = valueOf(env, 'OTEL_TRACES_SAMPLER_ARG') ?? '1'
  const ratio = /^(\d+\.?\d*|\.\d+)(e-?\d+)?$/i.test(ratioText) ? Number(ratioText) : Number.NaN
  if (ratio >= 0 && ratio <= 1) return { ratio }
  problems.push(
    `OTEL_TRACES_SAMPLER_ARG=${ratioText.slice(0, 64)}: use a number from 0 to 1; all traces are sent`,
  )
  return 'all'
}
