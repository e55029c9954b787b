/** The metrics of the running operator: one family for each row of the table (operations.md 9). */
import { Counter, Gauge, type Histogram, type Registry, type Summary } from 'prom-client'
import type { ProviderMetric, SweepGuard } from '@tenon/provider'
import { type Clock, eventLoopTurns } from '@tenon/runtime'
import { ClusterMetrics, type PodFigures, resourceLabel, shownAmount } from './cluster/cluster-metrics.ts'
import { coreRows } from './core-rows.ts'
import { Families } from './families.ts'
import { KeptGauge } from './gauges.ts'
import { MetricsRegistry } from './metrics-registry.ts'
import { clusterRows } from './cluster/cluster-rows.ts'
import { conditionRows } from './conditions/status-conditions.ts'
import { frameworkRows } from './framework/framework.ts'
import type { MetricRow } from './rows.ts'
import type { LaunchScope, PricePerHour, RequestState, Resources } from '@tenon/api'
import type { QuotaInput } from '@tenon/engine'
import type { GroupSource } from '../state/pods/group-of-pod.ts'

/** Values of `karpenter_build_info`. */
export interface BuildInfo {
  readonly version: string
  /** Version of Node. */
  readonly runtime: string
  /** As Go names it: `amd64`, `arm64`. */
  readonly arch: string
  /** Empty if unknown. */
  readonly commit: string
}

/** Read at each scrape. */
interface MetricsSources {
  readonly offeringTroubles: () => readonly OfferingTrouble[]
  readonly buffers: () => readonly BufferFigures[]
  readonly quotas: () => readonly QuotaFigures[]
  readonly groups: () => readonly GroupFigures[]
  readonly requests: () => readonly RequestFigures[]
  /** How long work has been waiting for a complete pass, by controller. */
  readonly passAgesMs: () => ReadonlyMap<string, number>
  /** Garbage collectors. */
  readonly sweeps: readonly Pick<SweepGuard, 'name' | 'held'>[]
  readonly provider: readonly ProviderMetric[]
}

type QuotaFigures = Pick<QuotaInput, 'limits' | 'name' | 'usage'>

export interface MetricsOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  readonly build?: BuildInfo
  readonly sources?: MetricsSources
  /** Metrics of the cluster; none if undefined. */
  readonly cluster?: {
    readonly detail: 'full' | 'reduced'
    /** Label keys that the provider adds to the well-known ones. */
    readonly providerLabels: readonly string[]
    readonly podFigures?: PodFigures
  }
}

const unknownBuild: BuildInfo = { version: 'unknown', runtime: 'unknown', arch: 'unknown', commit: '' }

export class Metrics {
  readonly registry: MetricsRegistry
  /** Undefined without clusterStateObservability. */
  readonly cluster: ClusterMetrics | undefined
  readonly nodeClaimsCreated: Counter
  readonly nodeClaimsTerminated: Counter
  readonly nodeClaimsDisrupted: Counter
  readonly nodeClaimsUnhealthyDisrupted: Counter
  readonly nodeRepairs: Counter
  readonly nodeRepairBrakes: Counter
  readonly standingBack: Gauge
  readonly podsDisruptionInitiated: Counter
  readonly disruptionEvaluation: Histogram
  readonly disruptionDecisions: Counter
  readonly disruptionDecisionsByPool: Counter
  readonly disruptionEligibleNodes: Gauge
  readonly consolidationTimeouts: Counter
  readonly failedValidations: Counter
  readonly disruptionQueueFailures: Counter
  readonly allowedDisruptions: Gauge
  readonly nodesConsumingBudgets: Gauge
  readonly consolidationScore: Histogram
  readonly consolidationMoves: Counter
  readonly nodesCreated: Counter
  readonly nodesTerminated: Counter
  readonly nodesDrained: Counter
  readonly nodesTermination: Summary
  readonly nodesLifetime: Histogram
  readonly podsEvictionRequests: Counter
  readonly podsDrained: Counter
  readonly schedulingDuration: Histogram
  readonly schedulingQueueDepth: Gauge
  readonly schedulingUnfinishedWork: Gauge
  readonly decisionFaults: Counter
  readonly ignoredPods: Gauge
  readonly waitingPods: Gauge
  readonly pendingPodsByZone: Gauge
  readonly schedulingDecisionDuration: Histogram
  readonly nominations: Counter
  readonly nominationOutcomes: Counter
  readonly unschedulablePods: Gauge
  readonly instanceTermination: Histogram
  readonly claimTermination: Histogram
  readonly stateSynced: Gauge
  readonly stateUnsyncedTime: Gauge
  readonly stateNodes: Gauge
  readonly nodePoolCostErrors: Counter
  readonly cloudProviderDuration: Histogram
  readonly cloudProviderErrors: Counter
  readonly offeringRefusals: Counter
  readonly uselessNodes: Counter
  readonly heldWorkloads: Gauge
  readonly rolloutsPaused: Gauge
  readonly rolloutsHalted: Gauge
  readonly nodesBlocked: Gauge
  readonly podDeletionCosts: Counter
  readonly paused: Gauge
  readonly pausesUnreadable: Gauge
  readonly groupDecisions: Counter
  readonly groupReleases: Counter
  readonly groupHalfBilled: Counter
  readonly groupSeconds: Histogram

  constructor({ clock, build = unknownBuild, sources, cluster }: MetricsOptions) {
    this.registry = new MetricsRegistry(clock, eventLoopTurns)
    const make = new Families(this.registry, coreRows)
    const { version, runtime, arch, commit } = build
    make.gauge('karpenter_build_info').set({ version, goversion: runtime, goarch: arch, commit }, 1)
    this.nodeClaimsCreated = make.counter('karpenter_nodeclaims_created_total')
    this.nodeClaimsTerminated = make.counter('karpenter_nodeclaims_terminated_total')
    this.nodeClaimsDisrupted = make.counter('karpenter_nodeclaims_disrupted_total')
    this.nodeClaimsUnhealthyDisrupted = make.counter('karpenter_nodeclaims_unhealthy_disrupted_total')
    this.podsDisruptionInitiated = make.counter('karpenter_pods_disruption_initiated_total')
    this.disruptionEvaluation = make.histogram(
      'karpenter_voluntary_disruption_decision_evaluation_duration_seconds',
    )
    this.disruptionDecisions = make.counter('karpenter_voluntary_disruption_decisions_total')
    this.disruptionDecisionsByPool = make.counter(
      'karpenter_voluntary_disruption_decisions_by_nodepool_total',
    )
    this.disruptionEligibleNodes = make.gauge('karpenter_voluntary_disruption_eligible_nodes')
    this.consolidationTimeouts = make.counter('karpenter_voluntary_disruption_consolidation_timeouts_total')
    this.failedValidations = make.counter('karpenter_voluntary_disruption_failed_validations_total')
    this.disruptionQueueFailures = make.counter('karpenter_voluntary_disruption_queue_failures_total')
    this.allowedDisruptions = make.gauge('karpenter_nodepools_allowed_disruptions')
    this.nodesConsumingBudgets = make.gauge('karpenter_nodepools_nodes_consuming_budgets')
    this.consolidationScore = make.histogram('karpenter_consolidation_score')
    this.consolidationMoves = make.counter('karpenter_consolidation_moves_total')
    this.nodesCreated = make.counter('karpenter_nodes_created_total')
    this.nodesTerminated = make.counter('karpenter_nodes_terminated_total')
    this.nodesDrained = make.counter('karpenter_nodes_drained_total')
    this.nodesTermination = make.summary('karpenter_nodes_termination_duration_seconds')
    this.nodesLifetime = make.histogram('karpenter_nodes_lifetime_duration_seconds')
    this.podsEvictionRequests = make.counter('karpenter_pods_eviction_requests_total')
    this.podsDrained = make.counter('karpenter_pods_drained_total')
    this.schedulingDuration = make.histogram('karpenter_scheduler_scheduling_duration_seconds')
    this.schedulingQueueDepth = make.gauge('karpenter_scheduler_queue_depth')
    this.schedulingUnfinishedWork = make.gauge('karpenter_scheduler_unfinished_work_seconds')
    this.decisionFaults = make.counter('karpenter_scheduler_faults_total')
    this.ignoredPods = make.gauge('karpenter_scheduler_ignored_pods_count')
    this.waitingPods = make.gauge('tenon_pods_waiting')
    this.pendingPodsByZone = make.gauge('karpenter_scheduler_pending_pods_by_effective_zone_count')
    this.schedulingDecisionDuration = make.histogram('karpenter_pods_scheduling_decision_duration_seconds')
    this.nominations = make.counter('karpenter_pods_nominations_total')
    this.nominationOutcomes = make.counter('karpenter_pods_nominations_outcomes_total')
    this.unschedulablePods = make.gauge('karpenter_scheduler_unschedulable_pods_count')
    this.instanceTermination = make.histogram('karpenter_nodeclaims_instance_termination_duration_seconds')
    this.claimTermination = make.histogram('karpenter_nodeclaims_termination_duration_seconds')
    this.stateSynced = make.gauge('karpenter_cluster_state_synced')
    this.stateUnsyncedTime = make.gauge('karpenter_cluster_state_unsynced_time_seconds')
    this.stateNodes = make.gauge('karpenter_cluster_state_node_count')
    this.nodePoolCostErrors = make.counter('karpenter_nodepools_cost_tracker_errors_total')
    this.cloudProviderDuration = make.histogram('karpenter_cloudprovider_duration_seconds')
    this.cloudProviderErrors = make.counter('karpenter_cloudprovider_errors_total')
    // Alerts on increases need series that start at 0.
    for (const part of ['decision', 'disruption', 'improvement', 'explanation', 'zones'])
      this.decisionFaults.inc({ part }, 0)
    for (const type of ['multi', 'single']) this.consolidationTimeouts.inc({ consolidation_type: type }, 0)
    this.nodeRepairs = make.counter('tenon_node_repairs_total')
    this.nodeRepairBrakes = make.counter('tenon_node_repair_brakes_total')
    this.standingBack = make.gauge('tenon_standing_back')
    this.uselessNodes = make.counter('tenon_nodes_launched_in_vain_total')
    this.heldWorkloads = make.gauge('tenon_workloads_without_launches')
    this.rolloutsPaused = make.gauge('tenon_nodepools_rollout_paused')
    this.rolloutsHalted = make.gauge('tenon_nodepools_rollout_halted')
    this.nodesBlocked = make.gauge('tenon_nodes_blocked')
    this.podDeletionCosts = make.counter('tenon_pod_deletion_costs_total')
    this.paused = make.gauge('tenon_paused')
    this.pausesUnreadable = make.gauge('tenon_pauses_unreadable')
    this.offeringRefusals = make.counter('tenon_offerings_launch_refusals_total')
    make.gauge('tenon_offerings_avoided', (gauge) => {
      gauge.reset()
      for (const { instanceType, zone, capacityType, phase } of sources?.offeringTroubles() ?? [])
        gauge.set({ instance_type: instanceType, zone, capacity_type: capacityType, phase }, 1)
    })
    this.groupDecisions = make.counter('tenon_group_decisions_total')
    this.groupReleases = make.counter('tenon_group_releases_total')
    this.groupHalfBilled = make.counter('tenon_group_half_billed_node_seconds_total')
    this.groupSeconds = make.histogram('tenon_group_seconds')
    make.gauge('tenon_groups', (gauge) => {
      gauge.reset()
      for (const { source, phase, groups } of sources?.groups() ?? []) gauge.set({ source, phase }, groups)
    })
    make.gauge('tenon_provisioning_requests', (gauge) => {
      gauge.reset()
      for (const { class: of, state, requests } of sources?.requests() ?? [])
        gauge.set({ class: of, state }, requests)
    })
    make.gauge('tenon_capacitybuffers_pods', (gauge) => {
      gauge.reset()
      for (const { namespace, name, wanted, kept } of sources?.buffers() ?? []) {
        gauge.set({ namespace, name, state: 'wanted' }, wanted)
        gauge.set({ namespace, name, state: 'kept' }, kept)
      }
    })
    make.gauge('tenon_capacitybuffers_price_per_hour', (gauge) => {
      gauge.reset()
      for (const { namespace, name, pricePerHour } of sources?.buffers() ?? [])
        if (pricePerHour !== undefined) gauge.set({ namespace, name }, pricePerHour)
    })
    const showQuotas = (gauge: Gauge, amountsOf: (figures: QuotaFigures) => Resources) => {
      gauge.reset()
      for (const figures of sources?.quotas() ?? [])
        for (const [resource, amount] of Object.entries(amountsOf(figures)))
          gauge.set(
            { quota: figures.name, resource_type: resourceLabel(resource) },
            shownAmount(resource, amount),
          )
    }
    make.gauge('tenon_capacityquota_limit', (gauge) => {
      showQuotas(gauge, ({ limits }) => limits)
    })
    make.gauge('tenon_capacityquota_used', (gauge) => {
      showQuotas(gauge, ({ usage }) => usage)
    })
    make.gauge('tenon_last_complete_pass_age_seconds', (gauge) => {
      for (const [controller, ageMs] of sources?.passAgesMs() ?? []) gauge.set({ controller }, ageMs / 1000)
    })
    make.gauge('tenon_sweep_held_objects', (gauge) => {
      for (const { name, held } of sources?.sweeps ?? []) gauge.set({ sweep: name }, held)
    })
    showProviderMetrics(this.registry, sources?.provider ?? [])
    this.cluster = cluster && new ClusterMetrics(this.registry, { ...cluster, nowMs: () => clock.now() })
  }
}

function showProviderMetrics(registry: Registry, metrics: readonly ProviderMetric[]): void {
  for (const metric of metrics) registry.registerMetric(familyOf(metric))
}

function familyOf(metric: ProviderMetric): Counter | Gauge {
  const config = { name: metric.name, help: metric.help, registers: [] }
  if (metric.type === 'counter') {
    return new Counter({
      ...config,
      collect() {
        this.reset()
        this.inc(metric.value() ?? 0)
      },
    })
  }
  return new Gauge({
    ...config,
    collect() {
      const value = metric.value()
      if (value === undefined) this.remove({})
      else this.set(value)
    },
  })
}

/** Removes what reduced detail leaves out, until the process ends (scale.md 2). */
export function reduceDetail(registry: MetricsRegistry): void {
  for (const { name, grows } of metricTable) {
    if (grows === undefined) continue
    const metric: unknown = registry.getSingleMetric(name)
    if (metric instanceof KeptGauge) metric.close()
    registry.removeSingleMetric(name)
  }
}

/** All families except `process_*`, `nodejs_*` and `go_*`; the reference page and dashboards are checked against it. */
export const metricTable: readonly MetricRow[] = [
  ...coreRows,
  ...clusterRows,
  ...conditionRows,
  ...frameworkRows,
]

/** Size and price of the room that one CapacityBuffer keeps. */
export interface BufferFigures {
  readonly namespace: string
  readonly name: string
  readonly wanted: number
  /** Pods with room on existing nodes. */
  readonly kept: number
  /** Price of that room; undefined if a node has no known price. */
  readonly pricePerHour: PricePerHour
}

/** Number of groups of pods that do not run yet. */
export interface GroupFigures {
  readonly source: GroupSource
  readonly phase: 'waiting_for_members' | 'pending' | 'launching' | 'joining' | 'open'
  readonly groups: number
}

export interface RequestFigures {
  readonly class: 'check-capacity' | 'best-effort-atomic-scale-up'
  readonly state: RequestState
  readonly requests: number
}

/** An offering whose launches failed. */
export interface OfferingTrouble extends LaunchScope {
  /** Consecutive failures; simultaneous ones count once. */
  readonly failures: number
  /** Message of the last failure. */
  readonly because: string
  /** `waiting`: paused; `due`: may be tried; `probed`: one launch is trying it. */
  readonly phase: 'waiting' | 'due' | 'probed'
  /** End of the pause; Unix milliseconds. */
  readonly untilMs: number
}
