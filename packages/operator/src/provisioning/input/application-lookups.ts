/** What stands behind pods, as the caches hold it. */
import type { SelectorLookups, Service } from '@tenon/api'
import { type ApplicationCaches, indexes } from '../../state/caches.ts'

/** Lookups for one pass: Services of a namespace are collected once. */
export function applicationLookups(caches: ApplicationCaches): SelectorLookups {
  const services = new Map<string, readonly Service[]>()
  return {
    services: (namespace) => {
      let found = services.get(namespace)
      if (found === undefined) {
        found = caches.services.byIndex(indexes.byNamespace, namespace)
        services.set(namespace, found)
      }
      return found
    },
    replicationController: (namespace, name) => caches.replicationControllers.get({ namespace, name }),
    replicaSet: (namespace, name) => caches.replicaSets.get({ namespace, name }),
    statefulSet: (namespace, name) => caches.statefulSets.get({ namespace, name }),
  }
}
