import type { KubeObject, ResourceType } from '@tenon/api'
import type { KubeClient, ObjectKey, PatchOptions } from '@tenon/kube'
import type { Transport } from '@tenon/runtime'
import type { Death } from './harness.ts'

/** Access of a process to the cloud and the API server, until it crashes. */
export interface MortalProcess {
  readonly isDead: () => boolean
  /** Wraps the client of the process. */
  readonly client: (client: KubeClient) => KubeClient
  /** Wraps the transport of the process; every request but GET is a write. */
  readonly transport: (transport: Transport) => Transport
}

/**
 * A process that crashes at one of its writes to the cloud or the API server: from then on no call returns. Without a
 * death it never crashes.
 */
export function mortalProcess(death?: Death): MortalProcess {
  let writes = 0
  let isDead = false
  const forever = async (): Promise<never> => await new Promise<never>(() => undefined)
  const write = async <T>(act: () => Promise<T>): Promise<T> => {
    if (isDead) return await forever()
    if (++writes !== death?.atWrite) return await act()
    // The write is complete with its response, whatever that is.
    if (death.when === 'after') await act().catch(() => undefined)
    isDead = true
    return await forever()
  }
  return {
    isDead: () => isDead,
    client: (client) => ({
      get: (type, key, options) => client.get(type, key, options),
      list: (type, options) => client.list(type, options),
      create: (type, object, options) => write(() => client.create(type, object, options)),
      update: (type, object, options) => write(() => client.update(type, object, options)),
      patch: <T extends KubeObject>(
        type: ResourceType<T>,
        key: ObjectKey,
        patch: object,
        options?: PatchOptions,
      ) => write(() => client.patch(type, key, patch, options)),
      delete: (type, key, options) => write(() => client.delete(type, key, options)),
      evict: (pod, uid, options) => write(() => client.evict(pod, uid, options)),
      serverVersion: () => client.serverVersion(),
    }),
    transport: (transport) => ({
      send: (request, signal) =>
        request.method === 'GET'
          ? transport.send(request, signal)
          : write(() => transport.send(request, signal)),
    }),
  }
}
