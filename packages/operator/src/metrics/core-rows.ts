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
    help: 'NodeClaims created; reason is provisioned, or the disruption that needs a replacement',
  },
  {
    name: 'nodeclaims_terminated_total',
    type: 'counter',
    labels: ['nodepool', 'capacity_type', 'zone'],
    unit: 'NodeClaims',
    help: 'NodeClaims removed',
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
    help: 'Pods that must be rescheduled because their NodeClaim was deleted, by cause',
  },
  {
    name: 'nodeclaims_unhealthy_disrupted_total',
    type: 'counter',
    labels: ['condition', 'nodepool', 'capacity_type', 'image_id'],
    unit: 'NodeClaims',
    help: 'NodeClaims deleted because their node is unhealthy',
  },
  {
    name: 'nodeclaims_instance_termination_duration_seconds',
    type: 'histogram',
    labels: ['nodepool'],
    unit: 'seconds',
    buckets: powersOfTwo(10),
    help: 'Time from the first delete call until the cloud reports the instance as not found',
  },
  {
    name: 'nodeclaims_termination_duration_seconds',
    type: 'histogram',
    labels: ['nodepool'],
    unit: 'seconds',
    buckets: powersOfTwo(11),
    help: 'Time from the deletion request until the NodeClaim is removed',
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
    help: 'Nodes removed',
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
    help: 'Time from the deletion request until the finalizer of the Node is removed',
  },
  {
    name: 'nodes_lifetime_duration_seconds',
    type: 'histogram',
    labels: ['nodepool'],
    unit: 'seconds',
    buckets: lifetimeBuckets,
    help: 'Time from the creation of a Node until its finalizer is removed',
  },
  {
    name: 'pods_eviction_requests_total',
    type: 'counter',
    labels: ['code'],
    unit: 'requests',
    help: 'Eviction requests, by HTTP status of the response',
  },
  {
    name: 'pods_drained_total',
    type: 'counter',
    labels: ['reason'],
    unit: 'pods',
    help: 'Pods that left a node during a drain',
  },
]

const scheduling: readonly MetricRow[] = [
  {
    name: 'pods_scheduling_decision_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Time from the first observation of a pending pod until the decision about it',
  },
  {
    name: 'scheduler_scheduling_duration_seconds',
    type: 'histogram',
    labels: ['controller'],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Duration of one scheduling decision; the provisioner observes the decision and its whole pass',
  },
  {
    name: 'scheduler_queue_depth',
    type: 'gauge',
    labels: ['controller', 'scheduling_id'],
    unit: 'pods',
    help: 'Pods that the current scheduling decision has not placed yet',
  },
  {
    name: 'scheduler_unfinished_work_seconds',
    type: 'gauge',
    labels: ['controller', 'scheduling_id'],
    unit: 'seconds',
    help: 'Age of the scheduling decision in progress',
  },
  {
    name: 'scheduler_faults_total',
    type: 'counter',
    labels: ['part'],
    unit: 'errors',
    help: 'Bugs found during decisions, by what failed: decision and disruption are repeated without the object that caused the failure; improvement, explanation and zones of pods are skipped',
  },
  {
    name: 'scheduler_ignored_pods_count',
    type: 'gauge',
    labels: [],
    unit: 'pods',
    help: 'Pending pods excluded from the last decision because of their spec',
  },
  {
    name: 'scheduler_unschedulable_pods_count',
    type: 'gauge',
    labels: ['controller'],
    unit: 'pods',
    help: 'Pods that no NodePool can run',
  },
  {
    name: 'scheduler_pending_pods_by_effective_zone_count',
    type: 'gauge',
    labels: ['controller', 'zone'],
    unit: 'pods',
    help: 'Pending pods by the only zone they can use; flexible for several zones, none for no zone',
  },
]

const disruption: readonly MetricRow[] = [
  {
    name: 'voluntary_disruption_decision_evaluation_duration_seconds',
    type: 'histogram',
    labels: ['reason', 'consolidation_type'],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Duration of the search for a decision, by disruption method',
  },
  {
    name: 'voluntary_disruption_decisions_total',
    type: 'counter',
    labels: decision,
    unit: 'decisions',
    help: 'Disruption decisions started',
  },
  {
    name: 'voluntary_disruption_decisions_by_nodepool_total',
    type: 'counter',
    labels: ['nodepool', ...decision],
    unit: 'decisions',
    help: 'Disruption decisions started, once for each affected NodePool',
  },
  {
    name: 'voluntary_disruption_eligible_nodes',
    type: 'gauge',
    labels: ['reason'],
    unit: 'nodes',
    help: 'Nodes that can be disrupted, before budgets',
  },
  {
    name: 'voluntary_disruption_consolidation_timeouts_total',
    type: 'counter',
    labels: ['consolidation_type'],
    unit: 'searches',
    help: 'Searches for consolidation that ended at their timeout',
  },
  {
    name: 'voluntary_disruption_failed_validations_total',
    type: 'counter',
    labels: ['consolidation_type'],
    unit: 'nodes',
    help: 'Nodes whose disruption was decided but not started because the cluster changed',
  },
  {
    name: 'voluntary_disruption_queue_failures_total',
    type: 'counter',
    labels: decision,
    unit: 'replacements',
    help: 'Replacements that did not become ready, so that the nodes they replace stay; consolidation_type is the decision, as in Karpenter',
  },
  {
    name: 'nodepools_allowed_disruptions',
    type: 'gauge',
    labels: ['nodepool', 'reason'],
    unit: 'nodes',
    help: 'Nodes of a NodePool that its budgets allow to be disrupted at the same time; 2147483647 without a limit',
  },
  {
    name: 'nodepools_nodes_consuming_budgets',
    type: 'gauge',
    labels: ['nodepool', 'reason'],
    unit: 'nodes',
    help: 'Nodes of a NodePool that are being removed or not ready, and count against its budgets',
  },
  {
    name: 'consolidation_moves_total',
    type: 'counter',
    labels: move,
    unit: 'moves',
    help: 'Consolidation moves evaluated',
  },
  {
    name: 'consolidation_score',
    type: 'histogram',
    labels: move,
    unit: 'ratio',
    buckets: [0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10],
    help: "Savings of a move divided by its disruption, both as shares of the NodePool's total",
  },
]

const state: readonly MetricRow[] = [
  {
    name: 'build_info',
    type: 'gauge',
    labels: ['version', 'goversion', 'goarch', 'commit'],
    unit: '1',
    help: 'Version of this program; goversion is the version of its runtime',
  },
  {
    name: 'cluster_state_node_count',
    type: 'gauge',
    labels: [],
    unit: 'nodes',
    help: 'Instances in the cluster state',
  },
  {
    name: 'cluster_state_synced',
    type: 'gauge',
    labels: [],
    unit: '1',
    help: '1 while the cluster state is complete, else 0; decisions need a complete state',
  },
  {
    name: 'cluster_state_unsynced_time_seconds',
    type: 'gauge',
    labels: [],
    unit: 'seconds',
    help: 'Time since the cluster state became incomplete; 0 while it is complete',
  },
  {
    name: 'nodepools_cost_tracker_errors_total',
    type: 'counter',
    labels: ['nodepool'],
    unit: 'errors',
    help: 'Failed attempts to read the prices of a NodePool',
  },
  {
    name: 'cloudprovider_duration_seconds',
    type: 'histogram',
    labels: call,
    unit: 'seconds',
    buckets: callBuckets,
    help: 'Duration of calls to the cloud provider',
  },
  {
    name: 'cloudprovider_errors_total',
    type: 'counter',
    labels: [...call, 'error'],
    unit: 'calls',
    help: 'Failed calls to the cloud provider, by kind of error; empty if the error has no kind',
  },
]

/** What Karpenter does not have. */
const own: readonly MetricRow[] = [
  {
    name: 'karpenter_pods_nominations_total',
    type: 'counter',
    labels: [],
    unit: 'pods',
    help: 'Pods nominated for their planned node',
  },
  {
    name: 'karpenter_pods_nominations_outcomes_total',
    type: 'counter',
    labels: ['outcome'],
    unit: 'pods',
    help: 'Pods with a planned placement that mattered, by outcome: honoured, missed (bound to another node), too_late (bound before the nomination)',
  },
  {
    name: 'tenon_nodes_launched_in_vain_total',
    type: 'counter',
    labels: ['nodepool', 'cause'],
    unit: 'nodes',
    help: 'Nodes that do not run the pods they were launched for, by cause: short (less allocatable than the instance type promised), refused (by the scheduler)',
  },
  {
    name: 'tenon_workloads_without_launches',
    type: 'gauge',
    labels: ['nodepool'],
    unit: 'workloads',
    help: 'Workloads with pending pods for which launches are paused, because the last node did not run them',
  },
  {
    name: 'tenon_nodepools_rollout_paused',
    type: 'gauge',
    labels: ['nodepool'],
    unit: '1 or 0',
    help: '1 while the replacement of drifted nodes is paused because a replacement was itself drifted, else 0',
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
    help: 'Launches that failed because the offering had no capacity',
  },
  {
    name: 'tenon_offerings_avoided',
    type: 'gauge',
    labels: [...offering, 'phase'],
    unit: '1',
    help: '1 for each offering that had no capacity and is avoided, or tried by one launch at a time',
  },
  {
    name: 'tenon_last_complete_pass_age_seconds',
    type: 'gauge',
    labels: ['controller'],
    unit: 'seconds',
    help: 'Time that work has been waiting since the last complete pass; 0 while nothing waits',
  },
  {
    name: 'tenon_sweep_held_objects',
    type: 'gauge',
    labels: ['sweep'],
    unit: 'objects',
    help: 'Objects that a sweep would delete but keeps, because deleting so many at once more likely means a wrong response',
  },
]

/** Families that are there whatever the settings. */
export const coreRows: readonly MetricRow[] = [
  ...prefixed('karpenter_', [...instances, ...scheduling, ...disruption, ...state]),
  ...own,
]
