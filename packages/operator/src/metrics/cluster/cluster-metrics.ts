/** Metrics of the cluster: nodes, NodePools and pods (operations.md 9.2). */
import type { Gauge, Histogram, Registry, Summary } from 'prom-client'
import { clusterRows } from './cluster-rows.ts'
import { Families } from '../families.ts'
import type { KeptGauge, KeptSource, LiveGauge, LiveSeries } from '../gauges.ts'
import { ownValue, setOwn, wellKnownLabels } from '@tenon/api'

export interface ClusterMetricsOptions {
  readonly detail: 'full' | 'reduced'
  /** Label keys that the provider adds to the well-known ones. */
  readonly providerLabels: readonly string[]
  readonly nowMs: () => number
  /** Without it, the families of pods are empty. */
  readonly podFigures?: PodFigures
}

/** One series for each resource of a node, except in the last family. */
export interface NodeFamilies {
  /** Label keys of nodes by metric label. */
  readonly labelKeys: ReadonlyMap<string, readonly string[]>
  readonly allocatable: KeptGauge
  readonly systemOverhead: KeptGauge
  readonly podRequests: KeptGauge
  readonly podLimits: KeptGauge
  readonly daemonRequests: KeptGauge
  readonly daemonLimits: KeptGauge
  readonly currentLifetime: KeptGauge
}

/** One series for each pod. */
export interface PodFamilies {
  readonly state: KeptGauge
  readonly unstarted: LiveGauge
  readonly unbound: LiveGauge
  readonly provisioningUnbound: LiveGauge
  readonly provisioningUnstarted: LiveGauge
  readonly undecided: LiveGauge
}

/**
 * Series of pods at a scrape: waiting times, each pod at most once in a family, and changed states.
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
  /** Undefined with reduced detail. */
  readonly nodes: NodeFamilies | undefined
  /** Undefined with reduced detail. */
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

/** Metric labels that are not labels of the node. */
const own = ['node_name', 'phase', 'managed']

/**
 * Label keys of nodes by metric label, in order. If two keys map to the same metric label, the first one that a node has
 * counts.
 * @param providerLabels keys of the provider beside the well-known ones.
 */
function nodeLabelKeys(providerLabels: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, readonly string[]>()
  for (const key of new Set([...wellKnownLabels, ...providerLabels])) {
    const [, end, ...rest] = key.split('/')
    if (end === undefined || rest.length > 0) continue
    const name = end.toLowerCase().replaceAll('-', '_')
    // An invalid metric label would break the whole page.
    if (!/^[a-z_][a-z0-9_]*$/.test(name) || own.includes(name) || name === 'resource_type') continue
    keys.set(name, [...(keys.get(name) ?? []), key])
  }
  return keys
}

export function nodeLabelNames(providerLabels: readonly string[]): readonly string[] {
  return [...own, ...nodeLabelKeys(providerLabels).keys()]
}

/** Missing labels are empty. */
export function nodeLabelValues(
  keys: ReadonlyMap<string, readonly string[]>,
  node: {
    readonly name: string
    readonly phase: string
    readonly isManaged: boolean
    readonly labels: Readonly<Record<string, string>>
  },
): Readonly<Record<string, string>> {
  const values: Record<string, string> = {
    node_name: node.name,
    phase: node.phase,
    managed: String(node.isManaged),
  }
  for (const [name, from] of keys)
    setOwn(
      values,
      name,
      ownValue(node.labels, from.find((key) => ownValue(node.labels, key) !== undefined) ?? '') ?? '',
    )
  return values
}

/** Resource name in metrics: `ephemeral_storage`, `nvidia.com/gpu`. */
export function resourceLabel(resource: string): string {
  return resource.toLowerCase().replaceAll('-', '_')
}

/** Amount in metrics: cores for `cpu`. */
export function shownAmount(resource: string, amount: number): number {
  return resource === 'cpu' ? amount / 1000 : amount
}
