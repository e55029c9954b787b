/** Tries each operation of the IAM role, for `tenon preflight`. */
import { type PreflightModule, ProviderSettingError } from '@tenon/provider'
import type { Transport } from '@tenon/runtime'
import { defaultEndpoint, preProductionEndpoint, connectExoscale } from '../api/endpoint.ts'
import { HttpsTransport } from '../api/https-transport.ts'
import { type ExoscaleOptions, readExoscaleOptions } from '../options.ts'
import { operationsOf } from './operations.ts'

/** Somebody waits: a call gives up sooner than one that launches an instance. */
const patience = { maxAttempts: 2, attemptTimeoutMs: 8_000 } as const

/** @param connect opens a transport to an endpoint. */
export function preflightModuleOver(connect: (endpoint: string) => Transport): PreflightModule {
  return {
    open: ({ env, clock, userAgent }) => {
      const read = readExoscaleOptions(env)
      if ('error' in read) throw new ProviderSettingError(read.error)
      const options = read.ok
      return {
        hosts: hostsOf(options),
        operations: operationsOf((signal) =>
          connectExoscale({ options, connect, clock, userAgent, patience }, signal),
        ),
        credentialsFix:
          'check that EXOSCALE_API_KEY and EXOSCALE_API_SECRET belong together and that the key has not been revoked',
        grantFix: (operations) =>
          `allow ${operations.join(', ')} of the service compute in the IAM role of EXOSCALE_API_KEY (docs/exoscale/iam.md)`,
      }
    },
  }
}

/** Of the endpoint that is asked for zones, and of the zone's own. */
function hostsOf({ zone, apiEndpoint, apiEnvironment }: ExoscaleOptions): readonly string[] {
  const hostOf = (endpoint: string) => new URL(endpoint).hostname
  if (apiEndpoint !== undefined) return [hostOf(apiEndpoint)]
  if (apiEnvironment === 'ppapi') return [hostOf(preProductionEndpoint)]
  return [...new Set([hostOf(defaultEndpoint), `api-${zone}.exoscale.com`])]
}

/** Asks Exoscale. */
export const preflightModule: PreflightModule = preflightModuleOver(
  (endpoint) => new HttpsTransport(endpoint),
)
