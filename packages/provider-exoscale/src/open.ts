import { readFile } from 'node:fs/promises'
import { karpenterKinds, kinds } from '@tenon/api'
import { createController } from '@tenon/kube'
import type { CloudProvider, ProviderKubernetes } from '@tenon/provider'
import type { Runtime, Transport } from '@tenon/runtime'
import { connectExoscale } from './api/endpoint.ts'
import { parsePriceFile, type PriceFile } from './catalogue/prices.ts'
import { exoscaleNodeClassKind } from './nodeclass/types.ts'
import type { ExoscaleOptions } from './options.ts'
import { createExoscaleProvider } from './provider.ts'

export interface OpenDependencies {
  readonly options: ExoscaleOptions
  readonly kubernetes: ProviderKubernetes
  readonly runtime: Runtime
  /** Opens a transport to `endpoint` (scheme, host and port; paths are part of requests). */
  readonly connect: (endpoint: string) => Transport
  /** `name/version` of the program, for the User-Agent. */
  readonly userAgent?: string
}

/**
 * Connects to Exoscale and creates the provider with the process's own caches.
 * @throws Error if the zone is unknown, the API cannot be reached or the price file cannot be read.
 */
export async function openExoscale(deps: OpenDependencies, signal?: AbortSignal): Promise<CloudProvider> {
  const { options, kubernetes, runtime } = deps
  const { client, registry, events, server } = kubernetes
  const { priceFile: path } = options
  const priceFile = path === undefined ? {} : await readPriceFile(path)
  const api = await connectExoscale({ ...deps, clock: runtime.clock }, signal)
  return createExoscaleProvider({
    options,
    cloud: { api, priceFile },
    kubernetes: {
      client,
      events,
      caches: {
        nodeClasses: registry.cache(exoscaleNodeClassKind),
        nodeClaims: registry.cache(karpenterKinds.nodeClaim),
        nodes: registry.cache(kinds.node),
      },
    },
    joining: { clusterEndpoint: server },
    runtime,
    createController: (of) => createController(of, runtime),
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
