/** Families of the state of the cluster: what it has, what it uses, how long pods wait (operations.md 9.2). */
import type { Gauge, Histogram, Registry, Summary } from 'prom-client'
import { clusterRows } from './cluster-rows.ts'
import { Families } from '../families.ts'
import type { KeptGauge, KeptSource } from '../kept-gauge.ts'
import type { LiveGauge, LiveSeries } from '../live-gauge.ts'
import { nodeLabelKeys, nodeLabelNames } from './node-labels.ts'

export interface ClusterMetricsOptions {
  readonly detail: 'full' | 'reduced'
  /** Label keys that the provider adds to the well-known ones. */
  readonly providerLabels: readonly string[]
  readonly nowMs: () => number
  /** Absent where nobody follows pods: their families show nothing. */
  readonly podFigures?: PodFigures
}

/** There is a series for each of a node's resources, in each family but the last. */
export interface NodeFamilies {
  /** Label keys of nodes by the label of the metric. */
  readonly labelKeys: ReadonlyMap<string, readonly string[]>
  readonly allocatable: KeptGauge
  readonly systemOverhead: KeptGauge
  readonly podRequests: KeptGauge
  readonly podLimits: KeptGauge
  readonly daemonRequests: KeptGauge
  readonly daemonLimits: KeptGauge
  readonly currentLifetime: KeptGauge
}

/** There is a series for each pod that they concern. */
export interface PodFamilies {
  readonly state: KeptGauge
  readonly unstarted: LiveGauge
  readonly unbound: LiveGauge
  readonly provisioningUnbound: LiveGauge
  readonly provisioningUnstarted: LiveGauge
  readonly undecided: LiveGauge
}

/**
 * What the families of pods show when somebody looks: how long pods have been waiting for what they have not got,
 * by family and no pod twice in one, and what has changed about where they are.
 */
export type PodFigures = KeptSource & {
  readonly [Family in keyof Omit<PodFamilies, 'state'>]: () => Iterable<LiveSeries>
}

export class ClusterMetrics {
  readonly poolLimit: KeptGauge
  readonly poolUsage: KeptGauge
  readonly poolCost: KeptGauge
  readonly poolUnpriced: KeptGauge
  readonly utilization: Gauge
  readonly podStartup: Summary
  readonly podBound: Histogram
  readonly podProvisioningBound: Histogram
  readonly podProvisioningStartup: Histogram
  /** Absent with reduced detail. */
  readonly nodes: NodeFamilies | undefined
  /** Absent with reduced detail. */
  readonly pods: PodFamilies | undefined

  constructor(registry: Registry, options: ClusterMetricsOptions) {
    const { detail, providerLabels, nowMs, podFigures } = options
    const make = new Families(registry, clusterRows)
    const kept = (name: string, labels?: readonly string[]) => make.kept(`karpenter_${name}`, nowMs, labels)
    this.poolLimit = kept('nodepools_limit')
    this.poolUsage = kept('nodepools_usage')
    this.poolCost = kept('nodepools_cost_total')
    this.poolUnpriced = kept('nodepools_unpriced')
    this.utilization = make.gauge('karpenter_cluster_utilization_percent')
    this.podStartup = make.summary('karpenter_pods_startup_duration_seconds')
    this.podBound = make.histogram('karpenter_pods_bound_duration_seconds')
    this.podProvisioningBound = make.histogram('karpenter_pods_provisioning_bound_duration_seconds')
    this.podProvisioningStartup = make.histogram('karpenter_pods_provisioning_startup_duration_seconds')
    if (detail === 'reduced') return
    const names = nodeLabelNames(providerLabels)
    this.nodes = {
      labelKeys: nodeLabelKeys(providerLabels),
      allocatable: kept('nodes_allocatable', names),
      systemOverhead: kept('nodes_system_overhead', names),
      podRequests: kept('nodes_total_pod_requests', names),
      podLimits: kept('nodes_total_pod_limits', names),
      daemonRequests: kept('nodes_total_daemon_requests', names),
      daemonLimits: kept('nodes_total_daemon_limits', names),
      currentLifetime: kept('nodes_current_lifetime_seconds', names),
    }
    const age = (name: string, family: keyof Omit<PodFamilies, 'state'>) =>
      make.live(`karpenter_pods_${name}_time_seconds`, () => podFigures?.[family]() ?? [])
    this.pods = {
      state: make.kept('karpenter_pods_state', nowMs, [], podFigures),
      unstarted: age('unstarted', 'unstarted'),
      unbound: age('unbound', 'unbound'),
      provisioningUnbound: age('provisioning_unbound', 'provisioningUnbound'),
      provisioningUnstarted: age('provisioning_unstarted', 'provisioningUnstarted'),
      undecided: age('provisioning_scheduling_undecided', 'undecided'),
    }
  }
}
