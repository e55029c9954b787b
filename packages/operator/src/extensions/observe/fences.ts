/** API client and provider of a process that only observes: reads pass, writes are refused. */
import { type EventRecorder, type KubeClient, KubeError } from '@tenon/kube'
import { type CloudProvider, decorated, ProviderError } from '@tenon/provider'

/** Writes reject as they would for a service account without permission. */
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

/** Pretends to write: buffers and requests are tracked, and no object changes. */
export const unwrittenConditions: Pick<KubeClient, 'patch'> = {
  patch: <T>(_type: unknown, _key: unknown, patch: object) => Promise.resolve(patch as T),
}

/** Events are writes, too. */
export const noEvents: EventRecorder = { record: () => undefined }

export function readingProvider(provider: CloudProvider): CloudProvider {
  const refuse = (what: string) => () =>
    Promise.reject(new ProviderError('other', `the instance is not ${what}: this process only observes`))
  return decorated(provider, {
    create: refuse('created'),
    delete: refuse('deleted'),
    ...(provider.reboot && { reboot: refuse('rebooted') }),
    startControllers: (signal) => {
      provider.startReading?.(signal)
    },
  })
}
