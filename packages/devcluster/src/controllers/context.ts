import type { Clock, Logger, Random } from '@tenon/runtime'
import type { ClusterStore } from './loop/cluster-store.ts'
import type { EventRecorder } from './loop/event-recorder.ts'
import type { ReconcileLoop } from './loop/reconcile-loop.ts'

/** What the operator of a cluster may choose about its controllers. Times in milliseconds. */
export interface ControllerSettings {
  /** PEM put into every namespace's `kube-root-ca.crt`; empty for none. */
  readonly certificateAuthority: string
  /** A node that reported nothing for so long is Unknown. */
  readonly nodeMonitorGraceMs: number
  /** The same for a node that never reported. */
  readonly nodeStartupGraceMs: number
  /** How long a node must be gone before its pods are removed. */
  readonly podGcQuarantineMs: number
  /** Finished pods kept at most. */
  readonly terminatedPodThreshold: number
  /** Least time between two looks of a controller at the same many objects; what happens meanwhile is seen at once. */
  readonly leastRestMs: number
  /** Whether controllers write Events. */
  readonly recordsEvents: boolean
  /** Controllers that do not run, by the names of `kube-controller-manager`: somebody else does their work. */
  readonly without: readonly WorkloadControllerName[]
}

/** Controllers of workloads, as `kube-controller-manager --controllers` names them. */
export type WorkloadControllerName =
  | 'cronjob-controller'
  | 'deployment-controller'
  | 'endpoints-controller'
  | 'horizontal-pod-autoscaler-controller'
  | 'job-controller'
  | 'replicaset-controller'
  | 'replicationcontroller-controller'
  | 'statefulset-controller'

/** What holds for settings that nobody gave; the times are those of a real cluster. */
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

/** What every controller is given. */
export interface ControllerContext {
  readonly store: ClusterStore
  readonly loop: ReconcileLoop
  readonly events: EventRecorder
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly settings: ControllerSettings
}
