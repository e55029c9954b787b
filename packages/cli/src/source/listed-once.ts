/** A client that lists and never watches, for commands that need no more than rights to read (adoption.md 1). */
import { autoscalingKinds, podGroupKinds } from '@tenon/api'
import { unchanging } from '@tenon/ask/snapshot'
import { isKubeError, KubeError, type WatchingKubeClient } from '@tenon/kube'

/** Kinds whose absence is an answer to those who list them. */
const lookedFor: ReadonlySet<string> = new Set(
  [
    ...podGroupKinds.kubernetes,
    podGroupKinds.coscheduling,
    podGroupKinds.volcano,
    autoscalingKinds.provisioningRequest,
  ].map(({ plural }) => plural),
)

/**
 * Kinds that are not served, or may not be listed, have no objects.
 * @param refused called with the plural of a kind that may not be listed.
 */
export function listedOnce(
  client: WatchingKubeClient,
  refused: (plural: string) => void,
): WatchingKubeClient {
  const orNone = async <T>(plural: string, list: () => Promise<T>, none: T): Promise<T> => {
    try {
      return await list()
    } catch (error) {
      if (!isKubeError(error) || (error.status !== 403 && error.status !== 404)) throw error
      if (error.status === 403) refused(plural)
      return none
    }
  }
  const refuse = (): Promise<never> =>
    Promise.reject(new KubeError('forbidden', 403, 'this command only reads'))
  return {
    get: (type, key, options) => client.get(type, key, options),
    list: (type, options) =>
      lookedFor.has(type.plural)
        ? client.list(type, options)
        : orNone(type.plural, () => client.list(type, options), []),
    listing: (type, options, keep) =>
      orNone(type.plural, () => client.listing(type, options, keep), { items: [], resourceVersion: '1' }),
    watch: (_type, { signal }) => Promise.resolve(unchanging(signal)),
    servedVersions: (group, options) => client.servedVersions(group, options),
    servedKinds: (group, version, options) => client.servedKinds(group, version, options),
    serverVersion: () => client.serverVersion(),
    create: refuse,
    update: refuse,
    patch: refuse,
    delete: refuse,
    evict: refuse,
  }
}
