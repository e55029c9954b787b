/** Removes Nodes of instances that an earlier run did not store. */
import { kinds } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import type { Exoscale } from './exoscale.ts'

/**
 * Removes Nodes without an instance, and their pods, at once. Kubernetes would come to the same end,
 * but only after the minutes it waits for an instance that may come back; these never do.
 */
export function removeLostInstances(api: LocalApi, cloud: Exoscale): void {
  const alive = new Set(cloud.instances().map(({ id }) => `exoscale://${id}`))
  const lost = new Set<string>()
  for (const { metadata, spec } of api.list(kinds.node)) {
    const providerID = spec?.providerID ?? ''
    if (!providerID.startsWith('exoscale://') || alive.has(providerID)) continue
    lost.add(metadata.name)
    if ((metadata.finalizers ?? []).length > 0)
      api.patch(kinds.node, undefined, metadata.name, { metadata: { finalizers: null } })
    if (api.get(kinds.node, undefined, metadata.name) !== undefined)
      api.delete(kinds.node, undefined, metadata.name)
  }
  for (const { metadata, spec } of api.list(kinds.pod)) {
    if (lost.has(spec.nodeName ?? ''))
      api.delete(kinds.pod, metadata.namespace, metadata.name, { gracePeriodSeconds: 0 })
  }
}
