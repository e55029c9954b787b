/** Metrics of what Tenon does; always there (operations.md 9.1). */
import {
  callBuckets,
  durationBuckets,
  lifetimeBuckets,
  type MetricRow,
  powersOfTwo,
  prefixed,
} from './rows.ts'

const disrupted = ['reason', 'nodepool', 'capacity_type', 'consolidation_policy', 'termination_mode']
const decision = ['decision', 'reason', 'consolidation_type']
const move = ['decision', 'nodepool', 'policy']
const call = ['controller', 'method', 'provider']
const offering = ['instance_type', 'zone', 'capacity_type']

const instances: readonly MetricRow[] = [
  {
    name: 'nodeclaims_created_total',
    type: 'counter',
    labels: ['reason', 'nodepool', 'min_values_relaxed'],
    unit: 'NodeClaims',
    help: 'NodeClaims created; reason provisioned, or the disruption that made a replacement necessary',
  },
  {
    name: 'nodeclaims_terminated_total',
    type: 'counter',
    labels: ['nodepool', 'capacity_type', 'zone'],
    unit: 'NodeClaims',
    help: 'NodeClaims gone for good',
  },
  {
    name: 'nodeclaims_disrupted_total',
    type: 'counter',
    labels: disrupted,
    unit: 'NodeClaims',
    help: 'NodeClaims that Tenon deleted, by cause; deletions by users and of static scale-down are not counted',
  },
  {
    name: 'pods_disruption_initiated_total',
    type: 'counter',
    labels: disrupted,
    unit: 'pods',
    help: 'Pods that need another place because their NodeClaim was deleted, by cause',
  },
  {
    name: 'nodeclaims_unhealthy_disrupted_total',
    type: 'counter',
    labels: ['condition', 'nodepool', 'capacity_type', 'image_id'],
    unit: 'NodeClaims',
    help: 'NodeClaims deleted because of what their nodes report',
  },
  {
    name: 'nodeclaims_instance_termination_duration_seconds',
    type: 'histogram',
    labels: ['nodepool'],
    unit: 'seconds',
    buckets: powersOfTwo(10),
    help: 'From the first delete call until the cloud no longer knows the instance',
  },
  {
    name: 'nodeclaims_termination_duration_seconds',
    type: 'histogram',
    labels: ['nodepool'],
    unit: 'seconds',
    buckets: powersOfTwo(11),
    help: 'From the deletion request until a NodeClaim is gone',
  },
  {
    name: 'nodes_created_total',
    type: 'counter',
    labels: ['nodepool', 'zone'],
    unit: 'nodes',
    help: 'Nodes registered',
  },
  {
    name: 'nodes_terminated_total',
    type: 'counter',
    labels: ['nodepool', 'zone'],
    unit: 'nodes',
    help: 'Nodes gone for good',
  },
  {
    name: 'nodes_drained_total',
    type: 'counter',
    labels: ['nodepool'],
    unit: 'nodes',
    help: 'Nodes drained',
  },
  {
    name: 'nodes_termination_duration_seconds',
    type: 'summary',
    labels: ['nodepool'],
    unit: 'seconds',
    help: 'From the deletion request until a Node may go',
  },
  {
    name: 'nodes_lifetime_duration_seconds',
    type: 'histogram',
    labels: ['nodepool'],
    unit: 'seconds',
    buckets: lifetimeBuckets,
    help: 'From the creation of a Node until it may go',
  },
  {
    name: 'pods_eviction_requests_total',
    type: 'counter',
    labels: ['code'],
    unit: 'requests',
    help: 'Evictions asked for, by HTTP status of the answer',
  },
  {
    name: 'pods_drained_total',
    type: 'counter',
    labels: ['reason'],
    unit: 'pods',
    help: 'Pods that left a node in a drain',
  },
]

const scheduling: readonly MetricRow[] = [
  {
    name: 'pods_scheduling_decision_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'From the first sight of a waiting pod until a decision about it',
  },
  {
    name: 'scheduler_scheduling_duration_seconds',
    type: 'histogram',
    labels: ['controller'],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Time of one scheduling decision; the provisioner observes the decision alone and its whole pass',
  },
  {
    name: 'scheduler_queue_depth',
    type: 'gauge',
    labels: ['controller', 'scheduling_id'],
    unit: 'pods',
    help: 'Pods that the latest scheduling decision still has to place',
  },
  {
    name: 'scheduler_unfinished_work_seconds',
    type: 'gauge',
    labels: ['controller', 'scheduling_id'],
    unit: 'seconds',
    help: 'Age of a scheduling decision under way',
  },
  {
    name: 'scheduler_faults_total',
    type: 'counter',
    labels: ['part'],
    unit: 'errors',
    help: 'Bugs that decisions came across, by what failed: decision and disruption are made again without what made them fail, an improvement, explanation or the zones of pods are left out',
  },
  {
    name: 'scheduler_ignored_pods_count',
    type: 'gauge',
    labels: [],
    unit: 'pods',
    help: 'Pending pods left out of the last decision because of what they ask',
  },
  {
    name: 'scheduler_unschedulable_pods_count',
    type: 'gauge',
    labels: ['controller'],
    unit: 'pods',
    help: 'Pods no pool can take',
  },
  {
    name: 'scheduler_pending_pods_by_effective_zone_count',
    type: 'gauge',
    labels: ['controller', 'zone'],
    unit: 'pods',
    help: 'Pending pods by the only zone they can use; flexible: several, none: no zone',
  },
]

const disruption: readonly MetricRow[] = [
  {
    name: 'voluntary_disruption_decision_evaluation_duration_seconds',
    type: 'histogram',
    labels: ['reason', 'consolidation_type'],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Time one method of disruption took to look for a decision',
  },
  {
    name: 'voluntary_disruption_decisions_total',
    type: 'counter',
    labels: decision,
    unit: 'decisions',
    help: 'Decisions to disrupt nodes that were begun',
  },
  {
    name: 'voluntary_disruption_decisions_by_nodepool_total',
    type: 'counter',
    labels: ['nodepool', ...decision],
    unit: 'decisions',
    help: 'Decisions to disrupt nodes that were begun, once for each NodePool concerned',
  },
  {
    name: 'voluntary_disruption_eligible_nodes',
    type: 'gauge',
    labels: ['reason'],
    unit: 'nodes',
    help: 'Nodes that may be disrupted, before budgets',
  },
  {
    name: 'voluntary_disruption_consolidation_timeouts_total',
    type: 'counter',
    labels: ['consolidation_type'],
    unit: 'searches',
    help: 'Searches for consolidation that ended before they had looked at everything',
  },
  {
    name: 'voluntary_disruption_failed_validations_total',
    type: 'counter',
    labels: ['consolidation_type'],
    unit: 'nodes',
    help: 'Nodes whose disruption was decided and then not begun, because the cluster had changed',
  },
  {
    name: 'voluntary_disruption_queue_failures_total',
    type: 'counter',
    labels: decision,
    unit: 'replacements',
    help: 'Replacements that did not come up, so that the nodes they were for stay; consolidation_type holds the decision, as in Karpenter',
  },
  {
    name: 'nodepools_allowed_disruptions',
    type: 'gauge',
    labels: ['nodepool', 'reason'],
    unit: 'nodes',
    help: 'Nodes of a NodePool that its budgets let go at the same time; 2147483647 without a limit',
  },
  {
    name: 'nodepools_nodes_consuming_budgets',
    type: 'gauge',
    labels: ['nodepool', 'reason'],
    unit: 'nodes',
    help: 'Nodes of a NodePool that are going or not ready, and so use its budgets',
  },
  {
    name: 'consolidation_moves_total',
    type: 'counter',
    labels: move,
    unit: 'moves',
    help: 'Moves of consolidation that were weighed',
  },
  {
    name: 'consolidation_score',
    type: 'histogram',
    labels: move,
    unit: 'ratio',
    buckets: [0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10],
    help: 'Savings of a move by its disruption, both as shares of what the NodePool has',
  },
]

const state: readonly MetricRow[] = [
  {
    name: 'build_info',
    type: 'gauge',
    labels: ['version', 'goversion', 'goarch', 'commit'],
    unit: '1',
    help: 'Which program this is; goversion holds the version of its runtime',
  },
  {
    name: 'cluster_state_node_count',
    type: 'gauge',
    labels: [],
    unit: 'nodes',
    help: 'Instances that decisions take into account',
  },
  {
    name: 'cluster_state_synced',
    type: 'gauge',
    labels: [],
    unit: '1',
    help: 'Whether decisions can be made: 1 or 0',
  },
  {
    name: 'cluster_state_unsynced_time_seconds',
    type: 'gauge',
    labels: [],
    unit: 'seconds',
    help: 'How long no decisions could be made; 0 when they can',
  },
  {
    name: 'nodepools_cost_tracker_errors_total',
    type: 'counter',
    labels: ['nodepool'],
    unit: 'errors',
    help: 'Prices of a NodePool that could not be read',
  },
  {
    name: 'cloudprovider_duration_seconds',
    type: 'histogram',
    labels: call,
    unit: 'seconds',
    buckets: callBuckets,
    help: 'How long calls to the cloud provider take',
  },
  {
    name: 'cloudprovider_errors_total',
    type: 'counter',
    labels: [...call, 'error'],
    unit: 'calls',
    help: 'Calls to the cloud provider that failed, by what the error means; empty when it has no name',
  },
]

/** What Karpenter does not have. */
const own: readonly MetricRow[] = [
  {
    name: 'karpenter_pods_nominations_total',
    type: 'counter',
    labels: [],
    unit: 'pods',
    help: 'Pods nominated for the node they are planned for',
  },
  {
    name: 'karpenter_pods_nominations_outcomes_total',
    type: 'counter',
    labels: ['outcome'],
    unit: 'pods',
    help: 'Pods whose placement mattered, by how it ended: honoured, missed (bound elsewhere), too_late (bound before it was nominated)',
  },
  {
    name: 'tenon_nodes_launched_in_vain_total',
    type: 'counter',
    labels: ['nodepool', 'cause'],
    unit: 'nodes',
    help: 'Nodes that did not take the pods they were launched for, by cause: short (less room than the instance type promised), refused (by the scheduler)',
  },
  {
    name: 'tenon_workloads_without_launches',
    type: 'gauge',
    labels: ['nodepool'],
    unit: 'workloads',
    help: 'Workloads with waiting pods for which nothing is launched for a while, as the last node was launched in vain',
  },
  {
    name: 'tenon_nodepools_rollout_paused',
    type: 'gauge',
    labels: ['nodepool'],
    unit: '1 or 0',
    help: 'Whether drifted nodes are not replaced for a while, as a node that came in place of one was drifted itself',
  },
  {
    name: 'tenon_nodepools_rollout_halted',
    type: 'gauge',
    labels: ['nodepool'],
    unit: '1 or 0',
    help: 'Whether drifted nodes are not replaced any more, as too many replacements are unhealthy or the settings of the rollout are invalid',
  },
  {
    name: 'tenon_paused',
    type: 'gauge',
    labels: ['nodepool', 'what', 'by'],
    unit: '1',
    help: '1 for each thing that is paused for a NodePool, or for the whole cluster (nodepool=""): voluntary (disruption), launches, expiration, repair; by whom: person, automatic',
  },
  {
    name: 'tenon_pauses_unreadable',
    type: 'gauge',
    labels: ['nodepool'],
    unit: '1',
    help: '1 for each NodePool with a pause that cannot be read completely, and for the whole cluster (nodepool=""), also when ConfigMap tenon-brake itself cannot be read',
  },
  {
    name: 'tenon_offerings_launch_refusals_total',
    type: 'counter',
    labels: offering,
    unit: 'launches',
    help: 'Launches that an offering had no capacity for',
  },
  {
    name: 'tenon_offerings_avoided',
    type: 'gauge',
    labels: [...offering, 'phase'],
    unit: '1',
    help: '1 for each offering that launches avoid, or try one at a time, because it had no capacity',
  },
  {
    name: 'tenon_last_complete_pass_age_seconds',
    type: 'gauge',
    labels: ['controller'],
    unit: 'seconds',
    help: 'How long work has been waiting since the last complete pass; 0 while nothing waits',
  },
  {
    name: 'tenon_sweep_held_objects',
    type: 'gauge',
    labels: ['sweep'],
    unit: 'objects',
    help: 'What a sweep would delete, but holds back as so much at once is more likely a wrong answer',
  },
]

/** Families that are there whatever the settings. */
export const coreRows: readonly MetricRow[] = [
  ...prefixed('karpenter_', [...instances, ...scheduling, ...disruption, ...state]),
  ...own,
]
