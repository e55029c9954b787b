/** Tries each operation of the IAM role, for `tenon preflight`. */
import { type PreflightModule, type ProviderEnvironment, ProviderSettingError } from '@tenon/provider'
import type { Transport } from '@tenon/runtime'
import { defaultEndpoint, preProductionEndpoint, connectExoscale } from '../api/endpoint.ts'
import { routeTo } from '../api/connection/proxy.ts'
import { HttpsTransport } from '../api/https-transport.ts'
import { type ExoscaleOptions, readExoscaleOptions } from '../options.ts'
import { operationsOf } from './operations.ts'

/** A user waits, so calls time out sooner than those of launches. */
const patience = { maxAttempts: 2, attemptTimeoutMs: 8_000 } as const

/** @param connect opens a transport to an endpoint. */
export function preflightModuleOver(
  connect: (endpoint: string, env: ProviderEnvironment) => Transport,
): PreflightModule {
  return {
    open: ({ env, clock, userAgent }) => {
      const read = readExoscaleOptions(env)
      if ('error' in read) throw new ProviderSettingError(read.error)
      const options = read.ok
      return {
        hosts: hostsOf(options, env),
        operations: operationsOf((signal) =>
          connectExoscale(
            { options, connect: (endpoint) => connect(endpoint, env), clock, userAgent, patience },
            signal,
          ),
        ),
        credentialsFix:
          'check that EXOSCALE_API_KEY and EXOSCALE_API_SECRET belong together and that the key has not been revoked',
        grantFix: (operations) =>
          `allow ${operations.join(', ')} of the service compute in the IAM role of EXOSCALE_API_KEY (docs/exoscale/iam.md)`,
      }
    },
  }
}

/** The hosts of the zone list and of the zone's endpoint, or of the proxy to them. */
function hostsOf(
  { zone, apiEndpoint, apiEnvironment }: ExoscaleOptions,
  env: ProviderEnvironment,
): readonly string[] {
  const endpoints =
    apiEndpoint !== undefined
      ? [apiEndpoint]
      : apiEnvironment === 'ppapi'
        ? [preProductionEndpoint]
        : [defaultEndpoint, `https://api-${zone}.exoscale.com`]
  const hosts = endpoints.map((endpoint) => {
    const url = new URL(endpoint)
    const route = routeTo(url, env)
    return (route.kind === 'proxied' ? route.proxy.url : url).hostname
  })
  return [...new Set(hosts)]
}

export const preflightModule: PreflightModule = preflightModuleOver(
  (endpoint, env) => new HttpsTransport(endpoint, env),
)
