import type { Clock, Logger, Random } from '@tenon/runtime'
import type { ClusterStore } from './loop/cluster-store.ts'
import type { EventRecorder } from './loop/event-recorder.ts'
import type { ReconcileLoop } from './loop/reconcile-loop.ts'

/** Settings of the controllers. Times in milliseconds. */
export interface ControllerSettings {
  /** PEM for the `kube-root-ca.crt` of every namespace; empty for none. */
  readonly certificateAuthority: string
  /** A node without a report for this time becomes Unknown. */
  readonly nodeMonitorGraceMs: number
  /** The same for a node that has never reported. */
  readonly nodeStartupGraceMs: number
  /** How long a node must be gone before its pods are deleted. */
  readonly podGcQuarantineMs: number
  /** Maximum finished pods. */
  readonly terminatedPodThreshold: number
  /**
   * Minimum time between two reconciles of a key with many objects; changes meanwhile are handled together.
   */
  readonly leastRestMs: number
  /** Whether controllers write Events. */
  readonly recordsEvents: boolean
  /**
   * Controllers that do not run, by their `kube-controller-manager` names, as something else does their work.
   */
  readonly without: readonly WorkloadControllerName[]
}

/** Workload controllers, as in `kube-controller-manager --controllers`. */
export type WorkloadControllerName =
  | 'cronjob-controller'
  | 'deployment-controller'
  | 'endpoints-controller'
  | 'horizontal-pod-autoscaler-controller'
  | 'job-controller'
  | 'replicaset-controller'
  | 'replicationcontroller-controller'
  | 'statefulset-controller'

/** Default settings; the times are those of a real cluster. */
export const defaultSettings: ControllerSettings = {
  certificateAuthority: '',
  nodeMonitorGraceMs: 40_000,
  nodeStartupGraceMs: 60_000,
  podGcQuarantineMs: 40_000,
  terminatedPodThreshold: 12_500,
  leastRestMs: 0,
  recordsEvents: true,
  without: [],
}

/** What every controller gets. */
export interface ControllerContext {
  readonly store: ClusterStore
  readonly loop: ReconcileLoop
  readonly events: EventRecorder
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly settings: ControllerSettings
}
