/** What a run of an earlier version left on machines that were not kept with the cluster. */
import { kinds } from '@tenon/api'
import type { ExoscaleCluster } from '@tenon/provider-exoscale/simulator'

/**
 * Removes Nodes without a machine, and their pods, at once. Kubernetes would come to the same end,
 * but only after the minutes it waits for a machine that may come back; these never do.
 */
export function removeLostMachines({ server, cloud }: ExoscaleCluster): void {
  const { local } = server
  const alive = new Set(cloud.instances().map(({ id }) => `exoscale://${id}`))
  const lost = new Set<string>()
  for (const { metadata, spec } of local.list(kinds.node)) {
    const providerID = spec?.providerID ?? ''
    if (!providerID.startsWith('exoscale://') || alive.has(providerID)) continue
    lost.add(metadata.name)
    if ((metadata.finalizers ?? []).length > 0)
      local.patch(kinds.node, undefined, metadata.name, { metadata: { finalizers: null } })
    if (local.get(kinds.node, undefined, metadata.name) !== undefined)
      local.delete(kinds.node, undefined, metadata.name)
  }
  for (const { metadata, spec } of local.list(kinds.pod)) {
    if (lost.has(spec.nodeName ?? ''))
      local.delete(kinds.pod, metadata.namespace, metadata.name, { gracePeriodSeconds: 0 })
  }
}
