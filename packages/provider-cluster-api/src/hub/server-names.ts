/** Marks errors of the management cluster, so that they differ from those of the workload cluster. */
import { isKubeError, KubeError, type WatchingKubeClient } from '@tenon/kube'
import type { HubHealth } from './health.ts'

const methods: ReadonlySet<PropertyKey> = new Set(['get', 'list', 'create', 'update', 'patch', 'delete'])

/** A client whose errors name the server and are reported to `health`. */
export function withServerNames(
  client: WatchingKubeClient,
  server: string,
  health: Pick<HubHealth, 'record'>,
): WatchingKubeClient {
  return new Proxy(client, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      const method = value.bind(target) as (...args: readonly unknown[]) => unknown
      if (!methods.has(key)) return method
      return async (...args: readonly unknown[]) => {
        try {
          const answer = await method(...args)
          health.record()
          return answer
        } catch (error) {
          if (isKubeError(error)) health.record(error)
          throw isKubeError(error) ? named(error, server) : error
        }
      }
    },
  })
}

function named(error: KubeError, server: string): KubeError {
  const { kind, status, message, reason, retryAfterMs, fields } = error
  return new KubeError(kind, status, `management cluster ${server}: ${message}`, {
    cause: error,
    ...(reason !== undefined && { reason }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(fields !== undefined && { fields }),
  })
}
