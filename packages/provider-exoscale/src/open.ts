import { readFile } from 'node:fs/promises'
import { karpenterKinds, kinds } from '@tenon/api'
import { type CacheRegistry, createController, type EventRecorder, type KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger, Random } from '@tenon/runtime'
import { type ConnectDependencies, connectExoscale } from './api/endpoint.ts'
import { parsePriceFile, type PriceFile } from './catalogue/prices.ts'
import { exoscaleNodeClassKind } from './nodeclass/types.ts'
import { createExoscaleProvider } from './provider.ts'

export interface OpenDependencies extends ConnectDependencies {
  readonly kube: KubeClient
  /** The caches of this process, not started yet. */
  readonly registry: CacheRegistry
  readonly events: EventRecorder
  readonly clock: Clock
  /** Cryptographically strong outside simulations: it makes bootstrap tokens. */
  readonly random: Random
  readonly logger: Logger
  /** URL of the API server as new nodes see it; the option of the same name wins. */
  readonly clusterEndpoint: string
}

/**
 * Connects to Exoscale and makes the provider over the process's own caches.
 * @throws Error when the zone is not known, the API cannot be reached or the price file cannot be read.
 */
export async function openExoscale(deps: OpenDependencies, signal?: AbortSignal): Promise<CloudProvider> {
  const { registry, clock, logger, random } = deps
  const { priceFile: path } = deps.options
  const priceFile = path === undefined ? {} : await readPriceFile(path)
  const api = await connectExoscale(deps, signal)
  return createExoscaleProvider({
    ...deps,
    api,
    priceFile,
    caches: {
      nodeClasses: registry.cache(exoscaleNodeClassKind),
      nodeClaims: registry.cache(karpenterKinds.nodeClaim),
      nodes: registry.cache(kinds.node),
    },
    createController: (options) => createController(options, { clock, logger, random }),
  })
}

async function readPriceFile(path: string): Promise<PriceFile> {
  try {
    return parsePriceFile(await readFile(path, 'utf8'))
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    throw new Error(`EXOSCALE_PRICE_FILE ${path}: ${said}`, { cause: error })
  }
}
