/** ProvisioningRequests and PodTemplates, followed once they are served and readable (gangs.md 1). */
import { autoscalingKinds, kinds } from '@tenon/api'
import type { RequestObjects } from '../model.ts'
import { followOnceReadable, type OptionalCachesDependencies } from './optional-caches.ts'

const requestKinds = [autoscalingKinds.provisioningRequest, kinds.podTemplate] as const

/** @returns the current content; undefined until both kinds can be read. */
export async function followRequests(
  dependencies: OptionalCachesDependencies,
  signal: AbortSignal,
): Promise<() => RequestObjects | undefined> {
  const missing = () => {
    dependencies.runtime.logger.warn(
      '--enable-provisioning-requests: ProvisioningRequests and PodTemplates cannot both be read; install the definition (tenon crds apply) and grant get, list and watch on both; asked again every minute',
    )
  }
  const caches = await followOnceReadable(requestKinds, dependencies, missing, signal)
  return () => {
    const [requests, templates] = caches() ?? []
    if (requests === undefined || templates === undefined) return undefined
    return {
      list: () => requests.list(),
      template: (namespace, name) => templates.get({ namespace, name }),
    }
  }
}
