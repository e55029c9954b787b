import { type CloudProvider, type ProviderDependencies, ProviderSettingError } from '@tenon/provider'
import { HttpsTransport } from './api/https-transport.ts'
import { openExoscale } from './open.ts'
import { readExoscaleOptions } from './options.ts'

/**
 * Creates the provider of `tenon controller`.
 * @throws ProviderSettingError for a missing or invalid variable, Error if Exoscale cannot be used with them.
 */
export async function openForController({
  env,
  kubernetes,
  cloud,
  runtime,
}: ProviderDependencies): Promise<CloudProvider> {
  const options = readExoscaleOptions(env)
  if ('error' in options) throw new ProviderSettingError(options.error)
  return await openExoscale({
    options: options.ok,
    kubernetes,
    runtime,
    connect: (endpoint) => cloud.fenced(new HttpsTransport(endpoint, env)),
    userAgent: cloud.userAgent,
  })
}
