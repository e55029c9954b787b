import type { CloudSimulator, DevCluster, LocalApi } from '@tenon/devcluster'
import { defaultGroup } from '@tenon/provider-cluster-api'
import { type ClusterApi, type ClusterApiOptions, startClusterApi } from './cluster-api.ts'
import { installCluster, installKinds } from './crds.ts'
import { simulatedKinds } from './kinds.ts'

/** An embedded cluster whose machines a simulated Cluster API manages. */
export type ClusterApiCluster = DevCluster<ClusterApi>

/** The Cluster object that {@link clusterApiSimulator} creates for the workload cluster. */
export const workloadCluster = { namespace: 'default', name: 'workload' } as const

export function clusterApiSimulator(options: ClusterApiOptions = {}): CloudSimulator<ClusterApi> {
  return {
    prepare: (workload) => prepareHub(options.hub?.localAs('kubectl') ?? workload, options),
    start: (parts) => startClusterApi(parts, options),
  }
}

/** Serves the kinds of Cluster API on a hub, and creates the Cluster {@link workloadCluster}. */
export function prepareHub(
  hub: LocalApi,
  { version = 'v1beta2' }: Pick<ClusterApiOptions, 'version'> = {},
): void {
  const served = simulatedKinds(defaultGroup, version)
  installKinds(hub, served)
  installCluster(hub, served, workloadCluster.namespace, workloadCluster.name)
}
