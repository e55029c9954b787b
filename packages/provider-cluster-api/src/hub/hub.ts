/** The management cluster, with MachineDeployments and Machines (cluster-api.md 14). */
import type { Cache, WatchingKubeClient } from '@tenon/kube'
import type { ClusterApiNames } from '../names.ts'
import type { Cluster, HubKinds, Machine, MachineDeployment } from '../objects.ts'

/** The part of the hub that belongs to the workload cluster. */
export interface HubScope {
  /** Restricts MachineDeployments and Machines to a namespace; default: all. */
  readonly namespace?: string
  /** Restricts them by `spec.clusterName`. */
  readonly clusterName?: string
}

/** The caches of the hub, once they are synced. */
interface HubCaches {
  readonly machineDeployments: Cache<MachineDeployment>
  readonly machines: Cache<Machine>
  readonly clusters: Cache<Cluster>
}

/** A hub with a known API version and synced caches. */
export interface OpenHub {
  readonly kinds: HubKinds
  readonly caches: HubCaches
}

/** Whether the hub can be used. */
export type HubState =
  | { readonly kind: 'open'; readonly hub: OpenHub }
  /** It has not been read since this process became leader. */
  | { readonly kind: 'waiting'; readonly because: string }

/** The management cluster as the rest of the provider uses it. */
export interface Hub {
  /** URL of its API server; that of the workload cluster if both are one. */
  readonly server: string
  readonly kube: WatchingKubeClient
  readonly names: ClusterApiNames
  readonly scope: HubScope
  /** Never `waiting` again after it was open: known state is kept while the hub is unreachable. */
  readonly state: HubState
  /**
   * Until when it did not respond or was not read, in Unix milliseconds: the current time while that lasts, undefined
   * if it never happened.
   */
  readonly awayUntilMs: number | undefined
  /** Calls `listener` when the hub is open. */
  onOpen(listener: (hub: OpenHub) => void): void
}
