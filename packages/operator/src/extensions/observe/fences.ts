/** The API server and the cloud of a process that only observes: they can be read, and nothing else. */
import { type EventRecorder, type KubeClient, KubeError } from '@tenon/kube'
import { type CloudProvider, decorated, ProviderError } from '@tenon/provider'

/** The client without its writes: they reject as what an account without the rights is told. */
export function readingClient(client: KubeClient): KubeClient {
  const refuse = (verb: string) => () =>
    Promise.reject(new KubeError('forbidden', 403, `${verb} was not sent: this process only observes`))
  return {
    get: (type, key, options) => client.get(type, key, options),
    list: (type, options) => client.list(type, options),
    serverVersion: () => client.serverVersion(),
    create: refuse('create'),
    update: refuse('update'),
    patch: refuse('patch'),
    delete: refuse('delete'),
    evict: refuse('evict'),
  }
}

/** Takes conditions that nobody is to see, as if they were written. */
export const unwrittenConditions: Pick<KubeClient, 'patch'> = {
  patch: <T>(_type: unknown, _key: unknown, patch: object) => Promise.resolve(patch as T),
}

/** Events are writes, too. */
export const noEvents: EventRecorder = { record: () => undefined }

/** The provider without what changes anything in the cloud. */
export function readingProvider(provider: CloudProvider): CloudProvider {
  const refuse = (what: string) => () =>
    Promise.reject(new ProviderError('other', `the instance is not ${what}: this process only observes`))
  return decorated(provider, {
    create: refuse('created'),
    delete: refuse('deleted'),
    startControllers: (signal) => {
      provider.startReading?.(signal)
    },
  })
}
