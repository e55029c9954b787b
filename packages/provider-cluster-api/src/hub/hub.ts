/** The management cluster: where MachineDeployments and Machines are (cluster-api.md 14). */
import type { Cache, WatchingKubeClient } from '@tenon/kube'
import type { ClusterApiNames } from '../names.ts'
import type { Cluster, HubKinds, Machine, MachineDeployment } from '../objects.ts'

/** What of the hub belongs to the workload cluster. */
export interface HubScope {
  /** Only MachineDeployments and Machines in it are looked at; every namespace without it. */
  readonly namespace?: string
  /** Only those whose `spec.clusterName` it is. */
  readonly clusterName?: string
}

/** What is followed there, as soon as the first lists have arrived. */
interface HubCaches {
  readonly machineDeployments: Cache<MachineDeployment>
  readonly machines: Cache<Machine>
  readonly clusters: Cache<Cluster>
}

/** A hub whose API is known and whose objects have been listed. */
export interface OpenHub {
  readonly kinds: HubKinds
  readonly caches: HubCaches
}

/** Whether the hub can be used. */
export type HubState =
  | { readonly kind: 'open'; readonly hub: OpenHub }
  /** It has not been read since this process began to lead. */
  | { readonly kind: 'waiting'; readonly because: string }

/** The management cluster as the rest of the provider sees it. */
export interface Hub {
  /** URL of its API server; the workload cluster's own where both are one. */
  readonly server: string
  readonly kube: WatchingKubeClient
  readonly names: ClusterApiNames
  readonly scope: HubScope
  /** Never `waiting` again once it was open: what is known stands while the hub is away. */
  readonly state: HubState
  /**
   * Until when it did not answer, or had not been read, in Unix milliseconds: now while that lasts, undefined when it
   * never was so.
   */
  readonly awayUntilMs: number | undefined
  /** Calls `listener` when the hub has been opened. */
  onOpen(listener: (hub: OpenHub) => void): void
}
