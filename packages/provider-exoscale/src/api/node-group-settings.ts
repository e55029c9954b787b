/** Settings for Exoscale, from environment variables only (cluster-autoscaler.md 1.1). */
import { ownValue } from '@tenon/api'
import { ProviderSettingError } from '@tenon/provider'
import { Secret } from '@tenon/runtime'

export interface NodeGroupSettings {
  readonly zone: string
  readonly apiKey: string
  readonly apiSecret: Secret
  /** URL of the API, including `/v2`. */
  readonly endpoint: string
}

/** In the order in which they are checked; only the first missing one is reported. */
const required: readonly (readonly [variable: string, fix: string])[] = [
  ['EXOSCALE_ZONE', 'set it to the zone of the cluster, for example ch-gva-2'],
  ['EXOSCALE_API_KEY', 'set it to the key of an IAM API key pair'],
  ['EXOSCALE_API_SECRET', 'set it to the secret that belongs to EXOSCALE_API_KEY'],
]

/** Both become parts of a host name. */
const hostLabel = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/i

/** @throws ProviderSettingError for the first missing or invalid variable. */
export function readNodeGroupSettings(env: Readonly<Record<string, string | undefined>>): NodeGroupSettings {
  const text = (name: string): string => (ownValue(env, name) ?? '').trim()
  for (const [name, fix] of required)
    if (text(name) === '') throw new ProviderSettingError(`${name} is not set: ${fix}`, name)
  const zone = text('EXOSCALE_ZONE')
  const environment = text('EXOSCALE_API_ENVIRONMENT') || 'api'
  demandHostLabel('EXOSCALE_ZONE', zone, 'ch-gva-2')
  demandHostLabel('EXOSCALE_API_ENVIRONMENT', environment, 'api')
  return {
    zone,
    apiKey: text('EXOSCALE_API_KEY'),
    apiSecret: new Secret(text('EXOSCALE_API_SECRET')),
    endpoint: endpointOf(text('EXOSCALE_API_ENDPOINT')) ?? `https://${environment}-${zone}.exoscale.com/v2`,
  }
}

/** An endpoint for tests and simulations, used instead of zone and environment. */
function endpointOf(given: string): string | undefined {
  if (given === '') return undefined
  if (URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)) return given
  throw new ProviderSettingError(
    `EXOSCALE_API_ENDPOINT is "${given}", which is no URL: give it whole, for example https://api-ch-gva-2.exoscale.com/v2`,
    'EXOSCALE_API_ENDPOINT',
  )
}

function demandHostLabel(name: string, value: string, example: string): void {
  if (hostLabel.test(value)) return
  throw new ProviderSettingError(
    `${name} is "${value}", which cannot be a part of a host name: set it, for example, to ${example}`,
    name,
  )
}
