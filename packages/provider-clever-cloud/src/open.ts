/** Opens the provider with its settings, which are environment variables (clever-cloud.md 11). */
import { readFile } from 'node:fs/promises'
import { karpenterKinds, kinds } from '@tenon/api'
import { type Cache, createController } from '@tenon/kube'
import type { CloudProvider, ProviderDependencies } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import { Catalogue } from './catalogue/catalogue.ts'
import { type FlavorOverrides, noOverrides, readOverrides } from './catalogue/overrides.ts'
import { createCleverCloudProvider } from './create-provider.ts'
import { CleverMetrics } from './metrics.ts'
import { defaultRegion } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'

/** Creates the provider of `tenon controller`. An invalid flavor file is logged and ignored. */
export async function openCleverCloud({
  env,
  kubernetes,
  runtime,
}: ProviderDependencies): Promise<CloudProvider> {
  const { client, registry, events } = kubernetes
  const { logger } = runtime
  const region = env['CLEVER_CLOUD_REGION'] ?? defaultRegion
  const metrics = new CleverMetrics()
  const overrides = await readFlavors(env['FLAVORS_CONFIG_PATH'] ?? '', logger)
  metrics.flavorsInvalid.set(overrides === undefined ? 1 : 0)
  // A cluster without the kind must not prevent the start, so it is followed on first use.
  let nodeGroups: Cache<NodeGroup> | undefined
  return createCleverCloudProvider({
    platform: { region, catalogue: new Catalogue({ region, overrides: overrides ?? noOverrides, logger }) },
    kubernetes: {
      client,
      events,
      caches: {
        nodeClasses: registry.cache(cleverNodeClassKind),
        nodeClaims: registry.cache(karpenterKinds.nodeClaim),
        nodes: registry.cache(kinds.node),
        nodeGroups: () => (nodeGroups ??= registry.cache(nodeGroupKind)),
      },
    },
    metrics,
    runtime,
    createController: (options) => createController(options, runtime),
  })
}

/** The content of the file; undefined if it is invalid. */
async function readFlavors(path: string, logger: Logger): Promise<FlavorOverrides | undefined> {
  if (path === '') return noOverrides
  const read = await readFile(path, 'utf8').then(readOverrides, (error: unknown) => ({
    ok: undefined,
    error: error instanceof Error ? error.message : String(error),
  }))
  if (read.error === undefined) return read.ok
  logger.error('FLAVORS_CONFIG_PATH is invalid; the built-in flavors are used', {
    path,
    error: read.error,
  })
  return undefined
}
