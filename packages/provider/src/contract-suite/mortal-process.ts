import type { KubeObject, ResourceType } from '@tenon/api'
import type { KubeClient, ObjectKey, PatchOptions } from '@tenon/kube'
import type { Transport } from '@tenon/runtime'
import type { Death } from './harness.ts'

/** What a process reaches the cloud and the API server through, until it dies. */
export interface MortalProcess {
  readonly isDead: () => boolean
  /** The client as the process has it. */
  readonly client: (client: KubeClient) => KubeClient
  /** The transport as the process has it; every request but GET is a write. */
  readonly transport: (transport: Transport) => Transport
}

/**
 * A process that dies at one of its writes, to the cloud or the API server: that write and everything after it never
 * come back. Without a death it lives.
 */
export function mortalProcess(death?: Death): MortalProcess {
  let writes = 0
  let isDead = false
  const forever = async (): Promise<never> => await new Promise<never>(() => undefined)
  const write = async <T>(act: () => Promise<T>): Promise<T> => {
    if (isDead) return await forever()
    if (++writes !== death?.atWrite) return await act()
    // It has written once the answer is there, whatever that is.
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
