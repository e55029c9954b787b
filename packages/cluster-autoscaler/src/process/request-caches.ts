/** ProvisioningRequests and PodTemplates, followed once they are served and readable (gangs.md 1). */
import {
  autoscalingKinds,
  kinds,
  type PodTemplate,
  type ProvisioningRequest,
  type ResourceType,
} from '@tenon/api'
import { type Cache, type CacheRegistry, createCache, type WatchingKubeClient } from '@tenon/kube'
import type { Runtime, Transport } from '@tenon/runtime'
import type { RequestObjects } from '../model.ts'
import { usualFields } from './read-fields.ts'
import { readableKinds } from './readable-kinds.ts'

interface RequestCachesDependencies {
  readonly client: WatchingKubeClient
  readonly transport: Transport
  readonly registry: CacheRegistry
  readonly runtime: Runtime
}

const requestKinds: readonly ResourceType[] = [autoscalingKinds.provisioningRequest, kinds.podTemplate]
/** The CRD or the permission may be added while the process runs. */
const askAgainMs = 60_000

/**
 * Follows both kinds. If both can be read at the start, the registry waits for their first lists; otherwise it retries
 * every minute.
 * @returns the current content; undefined until they can be read.
 */
export async function followRequests(
  dependencies: RequestCachesDependencies,
  signal: AbortSignal,
): Promise<() => RequestObjects | undefined> {
  const { client, registry, runtime } = dependencies
  if (await areReadable(dependencies, signal)) {
    const objects = objectsOf(
      registry.cache(autoscalingKinds.provisioningRequest, { fields: usualFields }),
      registry.cache(kinds.podTemplate, { fields: usualFields }),
    )
    return () => objects
  }
  runtime.logger.warn(
    '--enable-provisioning-requests: ProvisioningRequests and PodTemplates cannot both be read; install the definition (tenon crds apply) and grant get, list and watch on both; asked again every minute',
  )
  let objects: RequestObjects | undefined
  const later = async () => {
    do await runtime.clock.sleep(askAgainMs, signal)
    while (!(await areReadable(dependencies, signal)))
    const requests = createCache(client, autoscalingKinds.provisioningRequest, {
      ...runtime,
      fields: usualFields,
    })
    const templates = createCache(client, kinds.podTemplate, { ...runtime, fields: usualFields })
    requests.start(signal)
    templates.start(signal)
    await Promise.all([requests.synced(signal), templates.synced(signal)])
    objects = objectsOf(requests, templates)
  }
  later().catch((error: unknown) => {
    if (!signal.aborted) runtime.logger.error('ProvisioningRequests are not followed', { error })
  })
  return () => objects
}

async function areReadable(
  { transport, runtime }: RequestCachesDependencies,
  signal: AbortSignal,
): Promise<boolean> {
  const readable = await readableKinds(requestKinds, { transport, ...runtime }, signal)
  return readable.length === requestKinds.length
}

function objectsOf(requests: Cache<ProvisioningRequest>, templates: Cache<PodTemplate>): RequestObjects {
  return {
    list: () => requests.list(),
    template: (namespace, name) => templates.get({ namespace, name }),
  }
}
