import { ownValue } from '@tenon/api'
import { Secret } from '@tenon/runtime'
import { type Currency, currencies } from './catalogue/prices.ts'
import { isUuid } from './identifiers.ts'

/** Settings for Exoscale, from environment variables. */
export interface ExoscaleOptions {
  readonly zone: string
  /** UUID of the SKS cluster. Only used in labels and filters, never looked up. */
  readonly clusterId: string
  readonly apiKey: string
  readonly apiSecret: Secret
  /** Prefix of every instance name, without a separator. */
  readonly instancePrefix: string
  readonly clusterDomain: string
  /** URL of the API server as new nodes use it; undefined: as in the client configuration. */
  readonly clusterEndpoint: string | undefined
  /** Full endpoint including `/v2`; overrides {@link apiEnvironment}. */
  readonly apiEndpoint: string | undefined
  /** Only `ppapi` has a meaning. */
  readonly apiEnvironment: string | undefined
  /** Currency of the prices that decisions compare. */
  readonly currency: Currency
  /** Path of a price list that replaces built-in prices. */
  readonly priceFile: string | undefined
  /** The driver that publishes the GPUs of nodes as ResourceSlices; undefined: none. */
  readonly gpuDevices: 'nvidia' | undefined
}

export type ExoscaleOptionsResult = { readonly ok: ExoscaleOptions } | { readonly error: string }

const fixes: Readonly<Record<string, string>> = {
  EXOSCALE_ZONE: 'set it to the zone of the cluster, for example ch-gva-2',
  EXOSCALE_SKS_CLUSTER_ID: 'set it to the UUID of the SKS cluster (exo compute sks list)',
  EXOSCALE_API_KEY: 'set it to the key of an IAM API key pair',
  EXOSCALE_API_SECRET: 'set it to the secret that belongs to EXOSCALE_API_KEY',
}

/** Reads the options. The error names the first missing or invalid variable, and the fix. */
export function readExoscaleOptions(
  env: Readonly<Record<string, string | undefined>>,
): ExoscaleOptionsResult {
  const text = (name: string): string => (ownValue(env, name) ?? '').trim()
  for (const [name, fix] of Object.entries(fixes)) {
    if (text(name) === '') return { error: `${name} is not set: ${fix}` }
    if (name === 'EXOSCALE_SKS_CLUSTER_ID' && !isUuid(text(name))) {
      return { error: `${name} is "${text(name)}", which is not a lower-case UUID: ${fix}` }
    }
  }
  const endpoint = text('EXOSCALE_API_ENDPOINT')
  if (endpoint !== '' && !isHttpUrl(endpoint)) {
    return {
      error: `EXOSCALE_API_ENDPOINT is "${endpoint}", which is not a URL: write the full URL, for example https://api-ch-gva-2.exoscale.com/v2`,
    }
  }
  const currency = text('EXOSCALE_CURRENCY').toUpperCase() || currencies[0]
  if (!isCurrency(currency)) {
    return { error: `EXOSCALE_CURRENCY is "${currency}": set it to one of ${currencies.join(', ')}` }
  }
  const gpuDevices = readGpuDevices(env)
  if ('error' in gpuDevices) return gpuDevices
  return {
    ok: {
      zone: text('EXOSCALE_ZONE'),
      clusterId: text('EXOSCALE_SKS_CLUSTER_ID'),
      apiKey: text('EXOSCALE_API_KEY'),
      apiSecret: new Secret(text('EXOSCALE_API_SECRET')),
      instancePrefix: text('EXOSCALE_COMPUTE_INSTANCE_PREFIX'),
      clusterDomain: text('CLUSTER_DOMAIN') || 'cluster.local',
      clusterEndpoint: text('CLUSTER_ENDPOINT') || undefined,
      apiEndpoint: endpoint || undefined,
      apiEnvironment: text('EXOSCALE_API_ENVIRONMENT') || undefined,
      currency,
      priceFile: text('EXOSCALE_PRICE_FILE') || undefined,
      gpuDevices: gpuDevices.ok,
    },
  }
}

/** Reads which driver publishes GPUs as devices. */
export function readGpuDevices(
  env: Readonly<Record<string, string | undefined>>,
): { readonly ok: ExoscaleOptions['gpuDevices'] } | { readonly error: string } {
  const name = (ownValue(env, 'EXOSCALE_GPU_DEVICES') ?? '').trim().toLowerCase()
  if (name === '' || name === 'nvidia') return { ok: name === '' ? undefined : name }
  return {
    error: `EXOSCALE_GPU_DEVICES is "${name}": set it to nvidia where NVIDIA's driver for dynamic resource allocation runs on the GPU nodes, or leave it out`,
  }
}

function isCurrency(text: string): text is Currency {
  return (currencies as readonly string[]).includes(text)
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}
