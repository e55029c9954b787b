/** Metrics of one iteration (cluster-autoscaler.md 7.3). */
import type { Node } from '@tenon/api'
import { unboundedGroupSize } from '@tenon/provider'
import type { MetricSink } from '../model.ts'
import type { AutoscalerOptions } from '../options/options.ts'
import { totalOf } from '../scale-up/quotas.ts'
import type { TaintRules } from '../templates/taint-rules.ts'
import type { GroupReport, RunningReport } from '../status/status-report.ts'

/** Counts taints of nodes by kind. */
export function countTaints(nodes: readonly Node[], rules: TaintRules, metrics: MetricSink): void {
  const counts = new Map<string, number>()
  for (const node of nodes) {
    for (const taint of node.spec?.taints ?? []) {
      const kind = rules.kindOf(taint)
      const type = taintType(kind)
      counts.set(type, (counts.get(type) ?? 0) + 1)
    }
  }
  metrics.clear('node_taints_count')
  for (const [type, count] of counts) metrics.set('node_taints_count', count, { type })
}

function taintType(kind: ReturnType<TaintRules['kindOf']>): string {
  switch (kind.kind) {
    case 'own':
    case 'condition':
      return kind.key
    case 'ignore':
      return 'ignore-taint.cluster-autoscaler.kubernetes.io/'
    case 'startup':
      return 'startup-taint'
    case 'status':
      return 'status-taint'
    case 'other':
      return 'other'
  }
}

/** Metrics of the cluster and of each group. */
export class ClusterMetrics {
  readonly #options: AutoscalerOptions
  readonly #metrics: MetricSink
  /** Back-off reasons that each group has had; their series are kept at 0. */
  readonly #reasons = new Map<string, Set<string>>()

  constructor(options: AutoscalerOptions, metrics: MetricSink) {
    this.#options = options
    this.#metrics = metrics
  }

  show(report: RunningReport, nodes: readonly Node[]): void {
    const { scaleUp, status } = this.#options
    const metrics = this.#metrics
    const { cluster, groups } = report
    metrics.set('cluster_safe_to_autoscale', cluster.isHealthy ? 1 : 0)
    for (const state of shownStates) metrics.set('nodes_count', cluster.counts[state], { state })
    metrics.set('node_groups_count', groups.length, { node_group_type: 'autoscaled' })
    metrics.set('node_groups_count', 0, { node_group_type: 'autoprovisioned' })
    const most = groups.reduce((sum, { maxSize }) => Math.min(sum + maxSize, unboundedGroupSize), 0)
    metrics.set('max_nodes_count', scaleUp.maxNodesTotal > 0 ? Math.min(most, scaleUp.maxNodesTotal) : most)
    const { cpuMillis, memoryBytes } = totalOf(nodes)
    metrics.set('cluster_cpu_current_cores', cpuMillis / 1000)
    metrics.set('cluster_memory_current_bytes', memoryBytes)
    for (const [direction, end] of limitEnds) {
      metrics.set('cpu_limits_cores', scaleUp.cores[end], { direction })
      metrics.set('memory_limits_bytes', scaleUp.memory[end], { direction })
    }
    if (status.emitPerNodeGroupMetrics) this.#showGroups(groups)
  }

  #showGroups(groups: readonly GroupReport[]): void {
    const metrics = this.#metrics
    for (const name of groupGauges) metrics.clear(name)
    const ids = new Set(groups.map(({ id }) => id))
    for (const id of this.#reasons.keys()) if (!ids.has(id)) this.#reasons.delete(id)
    for (const group of groups) {
      const labels = { node_group: group.id }
      metrics.set('node_group_min_count', group.minSize, labels)
      metrics.set('node_group_max_count', group.maxSize, labels)
      metrics.set('node_group_target_count', group.targetSize, labels)
      metrics.set('node_group_healthiness', group.isHealthy ? 1 : 0, labels)
      const now = group.backoff?.code
      const reasons = this.#reasons.get(group.id) ?? new Set<string>()
      if (now !== undefined) reasons.add(now)
      this.#reasons.set(group.id, reasons)
      for (const reason of reasons.size === 0 ? [''] : reasons)
        metrics.set('node_group_backoff_status', reason === now ? 1 : 0, { ...labels, reason })
    }
  }
}

const shownStates = [
  'ready',
  'unready',
  'notStarted',
  'suspended',
  'longUnregistered',
  'unregistered',
] as const
const limitEnds = [
  ['minimum', 'min'],
  ['maximum', 'max'],
] as const
const groupGauges = [
  'node_group_min_count',
  'node_group_max_count',
  'node_group_target_count',
  'node_group_healthiness',
  'node_group_backoff_status',
] as const
