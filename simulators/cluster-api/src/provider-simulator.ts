/** The simulated Cluster API as `tenon up` and `tenon devcluster` use it: the cluster is its own hub. */
import type { LocalApi } from '@tenon/devcluster'
import type { ProviderSimulator } from '@tenon/provider'
import {
  demonstration,
  nodeGroupDemonstration,
  tourNodeClass,
  tourNodePool,
  tourTeamPool,
} from './manifests.ts'
import type { ClusterApiSettings } from './settings.ts'
import { clusterApiSimulator } from './simulator.ts'
import { installGroups, installSizes, pricePerHour } from './sizes.ts'

const exactly = (ms: number) => ({ minMs: ms, maxMs: ms })

/** Short delays for demonstrations. */
const hurried: Partial<ClusterApiSettings> = {
  bootstrapDelay: { minMs: 100, maxMs: 300 },
  providerIdDelay: { minMs: 800, maxMs: 1_500 },
  nodeDelay: { minMs: 2_000, maxMs: 3_000 },
  deletionDelay: { minMs: 1_000, maxMs: 2_000 },
  drainRetryMs: 500,
}

/** A cluster that is its own hub, with MachineDeployments for the guided demonstration. */
export const simulator: ProviderSimulator = {
  cloud: ({ bootDelayMs, isHurried = false, hasNodeGroups = false }) => {
    const simulated = clusterApiSimulator({
      settings: {
        ...(isHurried && hurried),
        ...(bootDelayMs !== undefined && { nodeDelay: exactly(bootDelayMs) }),
      },
    })
    return {
      prepare: (api: LocalApi) => {
        simulated.prepare(api)
        if (hasNodeGroups) installGroups(api)
        else if (isHurried) installSizes(api)
      },
      start: (parts) => {
        const started = simulated.start(parts)
        return { instances: () => started.instances(), stop: () => started.stop() }
      },
    }
  },
  settings: () => ({}),
  demonstration,
  // The mode finds them by their annotations.
  nodeGroups: { specs: [], demonstration: nodeGroupDemonstration },
  tour: {
    cluster: 'cluster of Cluster API',
    nodeClass: tourNodeClass,
    nodePool: tourNodePool,
    whyReady: 'there are MachineDeployments that it may use',
    smallType: 'small',
    smallInstances: 2,
    priceOf: pricePerHour,
    team: { manifests: tourTeamPool },
    readOn: 'docs/cluster-api/',
  },
}
