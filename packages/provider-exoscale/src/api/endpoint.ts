/** Selects the endpoint of the configured zone. */
import type { Clock, Transport } from '@tenon/runtime'
import type { ExoscaleOptions } from '../options.ts'
import { ExoscaleClient } from './client.ts'
import type { HttpOptions } from './http.ts'

export const defaultEndpoint = 'https://api-ch-gva-2.exoscale.com/v2'
export const preProductionEndpoint = 'https://ppapi-ch-gva-2.exoscale.com/v2'

export interface ConnectDependencies {
  readonly options: ExoscaleOptions
  /** Opens a transport to `endpoint` (scheme, host and port; paths are part of requests). */
  readonly connect: (endpoint: string) => Transport
  readonly clock: Clock
  /** `name/version` of the program, for the User-Agent. */
  readonly userAgent?: string
  /** When a call gives up; default: as the client. */
  readonly patience?: Pick<HttpOptions, 'maxAttempts' | 'attemptTimeoutMs'>
}

/**
 * A client of the zone's endpoint. Looks up the zone first, so that a wrong zone or an unreachable API is found at
 * start.
 * @throws Error that lists the zones if the configured one does not exist.
 */
export async function connectExoscale(
  deps: ConnectDependencies,
  signal?: AbortSignal,
): Promise<ExoscaleClient> {
  const { options } = deps
  const fixed =
    options.apiEndpoint ?? (options.apiEnvironment === 'ppapi' ? preProductionEndpoint : undefined)
  const first = clientOf(deps, fixed ?? defaultEndpoint)
  const zones = await first.listZones(signal)
  const zone = zones.find((candidate) => candidate.name === options.zone)
  if (zone === undefined) {
    const known = zones
      .map((candidate) => candidate.name)
      .sort()
      .join(', ')
    throw new Error(
      `EXOSCALE_ZONE is "${options.zone}", which is not one of the zones ${known || '(none listed)'}`,
    )
  }
  const endpoint = zone['api-endpoint']
  if (fixed !== undefined || endpoint === undefined || endpoint === defaultEndpoint) return first
  return clientOf(deps, endpoint)
}

function clientOf(deps: ConnectDependencies, endpoint: string): ExoscaleClient {
  const { options, clock } = deps
  return new ExoscaleClient({
    transport: deps.connect(endpoint),
    basePath: new URL(endpoint).pathname.replace(/\/+$/, ''),
    credentials: { key: options.apiKey, secret: options.apiSecret },
    clock,
    userAgent: deps.userAgent ?? 'tenon',
    ...deps.patience,
  })
}
