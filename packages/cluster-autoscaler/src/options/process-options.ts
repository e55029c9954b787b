/** How the process runs: what of its flags decides nothing (cluster-autoscaler.md 2.1, 8). */

/** Where `--kubernetes` says that the API server is; what is absent is as in a pod. */
export interface KubernetesAddress {
  readonly server?: string
  /** `auth`: a kubeconfig with the credentials. */
  readonly kubeconfig?: string
  /** Whether the pod's own address and credentials count for what is not told. */
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
  /** Least severity that is written to standard error. */
  readonly standardErrorFrom: LogSeverity
}

export interface ProcessOptions {
  readonly cloudProvider: string
  /** Values of `--nodes`, in their order, as they were given. */
  readonly nodeGroupSpecs: readonly string[]
  /** Groups may have no node at all. */
  readonly allowsEmptyGroups: boolean
  /** An empty host stands for every address. */
  readonly listen: { readonly host: string; readonly port: number }
  readonly kubeconfig: string
  readonly kubernetes: KubernetesAddress | undefined
  readonly rate: { readonly perSecond: number; readonly burst: number } | undefined
  /** Of the lease; in the namespace of the status. */
  readonly leaseName: string
  /** Whoever started this process has looked: the cluster is the right one. */
  readonly acceptsClusterIdentity: boolean
  /** Absent when this process acts without asking. */
  readonly leaderElection: LeaderElectionOptions | undefined
  readonly logs: LogOptions
  readonly isProfiling: boolean
  readonly servesSnapshots: boolean
  /** Path; empty = that of a default scheduler. */
  readonly schedulerConfigFile: string
}
