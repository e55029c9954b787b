import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client'
import type { OfferingTrouble } from '../state/offering-health.ts'

const durationBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
]
const minute = 60
const hour = 60 * minute
const lifetimeBuckets = [
  ...[15, 30, 45].map((n) => n * minute),
  ...[1, 2, 4, 6, 8, 10, 12, 16, 20].map((n) => n * hour),
  ...[1, 2, 3, 5, 10, 15, 20, 25, 30].map((n) => n * 24 * hour),
]
const quantiles = [0, 0.5, 0.9, 0.99, 1]
const offeringLabels = ['instance_type', 'zone', 'capacity_type']
const powersOfTwo = (count: number) => Array.from({ length: count + 1 }, (_, n) => 2 ** n)

/** The metrics of the running operator, by their Karpenter names (lifecycle.md 14, scheduling.md 12.4). */
export class Metrics {
  readonly registry = new Registry()

  readonly nodeClaimsCreated = this.#counter('nodeclaims_created_total', 'NodeClaims created', [
    'reason',
    'nodepool',
    'min_values_relaxed',
  ])
  readonly nodeClaimsTerminated = this.#counter('nodeclaims_terminated_total', 'NodeClaims gone for good', [
    'nodepool',
    'capacity_type',
    'zone',
  ])
  readonly nodeClaimsDisrupted = this.#counter('nodeclaims_disrupted_total', 'NodeClaims deleted, by cause', [
    'reason',
    'nodepool',
    'capacity_type',
    'consolidation_policy',
    'termination_mode',
  ])
  readonly nodeClaimsUnhealthyDisrupted = this.#counter(
    'nodeclaims_unhealthy_disrupted_total',
    'NodeClaims deleted because of what their nodes report',
    ['condition', 'nodepool', 'capacity_type', 'image_id'],
  )
  readonly podsDisruptionInitiated = this.#counter(
    'pods_disruption_initiated_total',
    'Pods that need another place because their NodeClaim was deleted, by cause',
    ['reason', 'nodepool', 'capacity_type', 'consolidation_policy', 'termination_mode'],
  )
  readonly disruptionEvaluation = this.#histogram(
    'voluntary_disruption_decision_evaluation_duration_seconds',
    'Time one method of disruption took to look for a decision',
    ['reason', 'consolidation_type'],
    durationBuckets,
  )
  readonly disruptionDecisions = this.#counter(
    'voluntary_disruption_decisions_total',
    'Decisions to disrupt nodes that were begun',
    ['decision', 'reason', 'consolidation_type'],
  )
  readonly disruptionDecisionsByPool = this.#counter(
    'voluntary_disruption_decisions_by_nodepool_total',
    'Decisions to disrupt nodes that were begun, once for each NodePool concerned',
    ['nodepool', 'decision', 'reason', 'consolidation_type'],
  )
  readonly disruptionEligibleNodes = this.#gauge(
    'voluntary_disruption_eligible_nodes',
    'Nodes that may be disrupted, before budgets',
    ['reason'],
  )
  readonly consolidationTimeouts = this.#counter(
    'voluntary_disruption_consolidation_timeouts_total',
    'Searches for consolidation that ended before they had looked at everything',
    ['consolidation_type'],
  )
  readonly failedValidations = this.#counter(
    'voluntary_disruption_failed_validations_total',
    'Nodes whose disruption was decided and then not begun, because the cluster had changed',
    ['consolidation_type'],
  )
  readonly disruptionQueueFailures = this.#counter(
    'voluntary_disruption_queue_failures_total',
    'Replacements that did not come up, so that the nodes they were for stay',
    ['decision', 'reason', 'consolidation_type'],
  )
  readonly allowedDisruptions = this.#gauge(
    'nodepools_allowed_disruptions',
    'Nodes of a NodePool that its budgets let go at the same time',
    ['nodepool', 'reason'],
  )
  readonly nodesConsumingBudgets = this.#gauge(
    'nodepools_nodes_consuming_budgets',
    'Nodes of a NodePool that are going or not ready, and so use its budgets',
    ['nodepool', 'reason'],
  )
  readonly consolidationScore = this.#histogram(
    'consolidation_score',
    'Savings of a move by its disruption, both as shares of what the NodePool has',
    ['decision', 'nodepool', 'policy'],
    [0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10],
  )
  readonly consolidationMoves = this.#counter(
    'consolidation_moves_total',
    'Moves of consolidation that were weighed',
    ['decision', 'nodepool', 'policy'],
  )
  readonly nodesCreated = this.#counter('nodes_created_total', 'Nodes registered', ['nodepool', 'zone'])
  readonly nodesTerminated = this.#counter('nodes_terminated_total', 'Nodes gone for good', [
    'nodepool',
    'zone',
  ])
  readonly nodesDrained = this.#counter('nodes_drained_total', 'Nodes drained', ['nodepool'])
  readonly nodesTermination = this.#summary(
    'nodes_termination_duration_seconds',
    'From the deletion request until a Node may go',
    ['nodepool'],
  )
  readonly nodesLifetime = this.#histogram(
    'nodes_lifetime_duration_seconds',
    'From the creation of a Node until it may go',
    ['nodepool'],
    lifetimeBuckets,
  )
  readonly podsEvictionRequests = this.#counter(
    'pods_eviction_requests_total',
    'Evictions asked for, by answer',
    ['code'],
  )
  readonly podsDrained = this.#counter('pods_drained_total', 'Pods that left a node in a drain', ['reason'])
  readonly schedulingDuration = this.#histogram(
    'scheduler_scheduling_duration_seconds',
    'Time of one scheduling decision over a whole batch',
    ['controller'],
    durationBuckets,
  )
  readonly schedulingQueueDepth = this.#gauge(
    'scheduler_queue_depth',
    'Pods a scheduling decision under way has to place',
    ['controller', 'scheduling_id'],
  )
  readonly schedulingUnfinishedWork = this.#gauge(
    'scheduler_unfinished_work_seconds',
    'Age of a scheduling decision under way',
    ['controller', 'scheduling_id'],
  )
  readonly ignoredPods = this.#gauge(
    'scheduler_ignored_pods_count',
    'Pending pods left out of the last decision because of what they ask',
    [],
  )
  readonly pendingPodsByZone = this.#gauge(
    'scheduler_pending_pods_by_effective_zone_count',
    'Pending pods by the only zone they can use; flexible: several, none: no zone',
    ['controller', 'zone'],
  )
  readonly schedulingDecisionDuration = this.#histogram(
    'pods_scheduling_decision_duration_seconds',
    'From the first sight of a waiting pod until a decision about it',
    [],
    durationBuckets,
  )
  readonly nominations = this.#counter(
    'pods_nominations_total',
    'Pods nominated for the node they are planned for',
    [],
  )
  readonly nominationOutcomes = this.#counter(
    'pods_nominations_outcomes_total',
    'Pods whose placement mattered, by how it ended: honoured, missed (bound elsewhere), too_late (bound before it was nominated)',
    ['outcome'],
  )
  readonly unschedulablePods = this.#gauge('scheduler_unschedulable_pods_count', 'Pods no pool can take', [
    'controller',
  ])
  readonly instanceTermination = this.#histogram(
    'nodeclaims_instance_termination_duration_seconds',
    'From the first delete call until the cloud no longer knows the instance',
    ['nodepool'],
    powersOfTwo(10),
  )
  readonly claimTermination = this.#histogram(
    'nodeclaims_termination_duration_seconds',
    'From the deletion request until a NodeClaim is gone',
    ['nodepool'],
    powersOfTwo(11),
  )
  readonly stateSynced = this.#gauge('cluster_state_synced', 'Whether decisions can be made: 1 or 0', [])
  readonly stateUnsyncedTime = this.#gauge(
    'cluster_state_unsynced_time_seconds',
    'How long no decisions could be made; 0 when they can',
    [],
  )
  readonly stateNodes = this.#gauge(
    'cluster_state_node_count',
    'Machines that decisions take into account',
    [],
  )
  readonly nodePoolCost = this.#gauge('nodepools_cost_total', 'Price an hour of all machines of a NodePool', [
    'nodepool',
  ])
  readonly nodePoolCostErrors = this.#counter(
    'nodepools_cost_tracker_errors_total',
    'Prices of a NodePool that could not be read',
    ['nodepool'],
  )
  readonly cloudProviderDuration = this.#histogram(
    'cloudprovider_duration_seconds',
    'How long calls to the cloud provider take',
    ['controller', 'method', 'provider'],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  )
  readonly cloudProviderErrors = this.#counter(
    'cloudprovider_errors_total',
    'Calls to the cloud provider that failed, by what the error means',
    ['controller', 'method', 'provider', 'error'],
  )

  /** Set by the composition root: offerings that failed lately, as of now. */
  offeringTroubles: () => readonly OfferingTrouble[] = () => []
  /** Set by the composition root: how long work has been waiting for a complete pass, by controller. */
  passAgesMs: () => ReadonlyMap<string, number> = () => new Map()
  readonly offeringRefusals = new Counter({
    name: 'tenon_offerings_launch_refusals_total',
    help: 'Launches that an offering had no capacity for',
    labelNames: offeringLabels,
    registers: [this.registry],
  })
  readonly offeringsAvoided = new Gauge({
    name: 'tenon_offerings_avoided',
    help: '1 for each offering that launches avoid, or try one at a time, because it had no capacity',
    labelNames: [...offeringLabels, 'phase'],
    registers: [this.registry],
    collect: () => {
      this.offeringsAvoided.reset()
      for (const { instanceType, zone, capacityType, phase } of this.offeringTroubles())
        this.offeringsAvoided.set(
          { instance_type: instanceType, zone, capacity_type: capacityType, phase },
          1,
        )
    },
  })
  readonly passAge = new Gauge({
    name: 'tenon_last_complete_pass_age_seconds',
    help: 'How long work has been waiting since the last complete pass; 0 while nothing waits',
    labelNames: ['controller'],
    registers: [this.registry],
    collect: () => {
      for (const [controller, ageMs] of this.passAgesMs()) this.passAge.set({ controller }, ageMs / 1000)
    },
  })

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name: `karpenter_${name}`, help, labelNames, registers: [this.registry] })
  }

  #gauge(name: string, help: string, labelNames: string[]): Gauge {
    return new Gauge({ name: `karpenter_${name}`, help, labelNames, registers: [this.registry] })
  }

  #histogram(name: string, help: string, labelNames: string[], buckets: number[]): Histogram {
    return new Histogram({ name: `karpenter_${name}`, help, labelNames, buckets, registers: [this.registry] })
  }

  #summary(name: string, help: string, labelNames: string[]): Summary {
    return new Summary({
      name: `karpenter_${name}`,
      help,
      labelNames,
      percentiles: quantiles,
      registers: [this.registry],
    })
  }
}
