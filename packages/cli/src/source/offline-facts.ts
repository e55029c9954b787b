/** What a provider knows of NodePools without its cloud, as facts of a snapshot. */
import type { KubeObject, NodePool } from '@tenon/api'
import type { SnapshotCatalogue, SnapshotCloud } from '@tenon/ask'
import type { OfflineCatalogue, ProviderModule } from '@tenon/provider'

/** @param classes node classes by `GROUP/KIND/NAME`. */
export function offlineFacts(
  module: ProviderModule,
  offline: OfflineCatalogue,
  pools: readonly NodePool[],
  classes: ReadonlyMap<string, KubeObject>,
): { readonly cloud: SnapshotCloud; readonly catalogues: readonly SnapshotCatalogue[] } {
  const { wellKnownLabels, restrictedDomains, restrictedLabels, labelAliases } = offline.rules
  return {
    cloud: {
      name: module.name,
      nodeClasses: module.nodeClasses,
      wellKnownLabels,
      repairPolicies: [],
      ...(restrictedDomains && { restrictedDomains }),
      ...(restrictedLabels && { restrictedLabels }),
      ...(labelAliases && { labelAliases }),
    },
    catalogues: pools.map(({ metadata, spec }) => {
      const { group, kind, name } = spec.template.spec.nodeClassRef
      const { offered } = offline.typesOf(classes.get(`${group}/${kind}/${name}`), [...classes.values()])
      return { nodePools: [metadata.name], instanceTypes: offered }
    }),
  }
}
