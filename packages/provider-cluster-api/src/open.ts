/** Opens the provider with its settings, which are environment variables (cluster-api.md 6, 14). */
import { readFile } from 'node:fs/promises'
import { createController, createKubeClient } from '@tenon/kube'
import type { CloudProvider, ProviderDependencies } from '@tenon/provider'
import { ProviderSettingError } from '@tenon/provider'
import { defaultArchitecture } from './catalogue/node-labels.ts'
import { noPrices, type PriceList, readPriceFile } from './catalogue/prices.ts'
import { createClusterApiProvider } from './create-provider.ts'
import { HubConnection } from './hub/connection.ts'
import { HubHealth } from './hub/health.ts'
import { readHubSettings } from './hub/settings.ts'
import { toldApart } from './hub/told-apart.ts'
import { clusterAPINodeClassKind } from './nodeclass/types.ts'

/**
 * Makes the provider of `tenon controller`. The management cluster need not answer yet.
 * @throws ProviderSettingError for a setting that cannot be used.
 */
export async function openClusterApi(dependencies: ProviderDependencies): Promise<CloudProvider> {
  const { env, kube, registry, server, fenced, userAgent, ...parts } = dependencies
  const { clock, logger, random } = parts
  const { config, ...settings } = readHubSettings(env, clock, logger)
  const prices = await readPrices(env['CLUSTER_API_PRICES_PATH'] ?? '')
  const health = new HubHealth(clock)
  const hub = new HubConnection({
    ...settings,
    server: config?.server ?? server,
    kube: config
      ? toldApart(
          createKubeClient({ transport: fenced(config.transport), clock, userAgent }),
          config.server,
          health,
        )
      : kube,
    clock,
    random: random.fork('hub'),
    health,
    logger,
  })
  return createClusterApiProvider({
    ...parts,
    hub,
    kube,
    prices,
    architecture: defaultArchitecture(env['CAPI_SCALE_ZERO_DEFAULT_ARCH']),
    nodeClasses: registry.cache(clusterAPINodeClassKind),
    createController: (options) => createController(options, { clock, logger, random }),
  })
}

async function readPrices(path: string): Promise<PriceList> {
  if (path === '') return noPrices
  const variable = 'CLUSTER_API_PRICES_PATH'
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new ProviderSettingError(error instanceof Error ? error.message : String(error), variable)
  })
  const read = readPriceFile(text)
  if (read.ok !== undefined) return read.ok
  throw new ProviderSettingError(`${path}: ${read.error}`, variable)
}
