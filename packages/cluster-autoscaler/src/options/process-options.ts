/** Options of the process, which do not affect decisions (cluster-autoscaler.md 2.1, 8). */

/** The API server in `--kubernetes`; absent parts are as in a pod. */
export interface KubernetesAddress {
  readonly server?: string
  /** `auth`: a kubeconfig with the credentials. */
  readonly kubeconfig?: string
  /** Whether the pod's own address and credentials are used for absent parts. */
  readonly isInCluster: boolean
  readonly usesServiceAccount: boolean
}

interface LeaderElectionOptions {
  readonly leaseDurationMs: number
  readonly renewDeadlineMs: number
  readonly retryPeriodMs: number
}

export type LogSeverity = 'INFO' | 'WARNING' | 'ERROR' | 'FATAL'

export interface LogOptions {
  readonly verbosity: number
  readonly format: 'text' | 'json'
  /** Empty = standard error only. */
  readonly file: string
  /** The lowest severity that is written to standard error. */
  readonly standardErrorFrom: LogSeverity
}

interface ManagementOptions {
  /** Path of `--cloud-config`; may be empty. */
  readonly kubeconfig: string
  /** Whether an empty path means the cluster of the pod, even with `--kubeconfig`. */
  readonly isAuthoritative: boolean
}

export interface ProcessOptions {
  readonly cloudProvider: string
  /** How the management cluster is found, for a cloud whose node groups are objects there. */
  readonly management?: ManagementOptions
  /** Values of `--node-group-auto-discovery`, in order and unchanged. */
  readonly discoverySpecs: readonly string[]
  /** Whether the cloud may pick the node that a group loses whose nodes cannot be named. */
  readonly anyMachinePoolVictim: boolean
  /** Values of `--nodes`, in order and unchanged. */
  readonly nodeGroupSpecs: readonly string[]
  /** Whether groups may have no node at all. */
  readonly allowsEmptyGroups: boolean
  /** An empty host stands for every address. */
  readonly listen: { readonly host: string; readonly port: number }
  readonly kubeconfig: string
  readonly kubernetes: KubernetesAddress | undefined
  readonly rate: { readonly perSecond: number; readonly burst: number } | undefined
  /** The lease is in the namespace of the status ConfigMap. */
  readonly leaseName: string
  /** Whether the user has confirmed that this is the right cluster. */
  readonly acceptsClusterIdentity: boolean
  /** Absent without leader election. */
  readonly leaderElection: LeaderElectionOptions | undefined
  readonly logs: LogOptions
  readonly isProfiling: boolean
  readonly servesSnapshots: boolean
  /** Path; empty = default scheduler configuration. */
  readonly schedulerConfigFile: string
}
