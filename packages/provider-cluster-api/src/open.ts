/** Opens the provider with its settings, which are environment variables (cluster-api.md 6, 14). */
import { noPrices, type PriceList, readPriceFile } from '@tenon/api'
import { readFile } from 'node:fs/promises'
import { createAccessReviews, createController, createKubeClient } from '@tenon/kube'
import { type CloudProvider, type ProviderDependencies, ProviderSettingError } from '@tenon/provider'
import { defaultArchitecture } from './catalogue/node-labels.ts'
import { createClusterApiProvider } from './create-provider.ts'
import { HubConnection } from './hub/connection.ts'
import { HubHealth } from './hub/health.ts'
import { readHubSettings } from './hub/settings.ts'
import { withServerNames } from './hub/server-names.ts'
import { clusterAPINodeClassKind } from './node-class.ts'

/**
 * Creates the provider of `tenon controller`. The management cluster need not respond yet.
 * @throws ProviderSettingError for an invalid setting.
 */
export async function openClusterApi(dependencies: ProviderDependencies): Promise<CloudProvider> {
  const { env, kubernetes, cloud, runtime } = dependencies
  const { client, registry, events } = kubernetes
  const { clock, logger, random } = runtime
  const { config, ...settings } = readHubSettings(env, clock, logger)
  const prices = await readPrices(env['CLUSTER_API_PRICES_PATH'] ?? '')
  const health = new HubHealth(clock)
  const hub = new HubConnection({
    ...settings,
    server: config?.server ?? kubernetes.server,
    kube: config
      ? withServerNames(
          createKubeClient({
            transport: cloud.fenced(config.transport),
            clock,
            userAgent: cloud.userAgent,
          }),
          config.server,
          health,
        )
      : client,
    ...(config && {
      reviews: createAccessReviews({
        transport: cloud.fenced(config.transport),
        clock,
        userAgent: cloud.userAgent,
      }),
    }),
    clock,
    random: random.fork('hub'),
    health,
    logger,
  })
  return createClusterApiProvider({
    hub,
    kubernetes: { client, nodeClasses: registry.cache(clusterAPINodeClassKind), events },
    defaults: { prices, architecture: defaultArchitecture(env['CAPI_SCALE_ZERO_DEFAULT_ARCH']) },
    runtime,
    createController: (options) => createController(options, runtime),
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
