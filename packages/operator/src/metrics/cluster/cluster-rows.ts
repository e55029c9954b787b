/** Metrics of what is in the cluster; absent without observability (operations.md 9.2). */
import { durationBuckets, type MetricRow, prefixed } from '../rows.ts'

const pod = ['name', 'namespace']
const perNode = { type: 'gauge', hasNodeLabels: true, grows: 'with the nodes' } as const
const perPod = { type: 'gauge', labels: pod, unit: 'seconds', grows: 'with the pods' } as const
const resource = { labels: ['resource_type'], unit: 'cores, bytes or pieces' } as const

const pools: readonly MetricRow[] = [
  {
    name: 'nodepools_limit',
    type: 'gauge',
    ...resource,
    labels: ['resource_type', 'nodepool'],
    help: 'What spec.limits of a NodePool allows',
  },
  {
    name: 'nodepools_usage',
    type: 'gauge',
    ...resource,
    labels: ['resource_type', 'nodepool'],
    help: 'What the instances of a NodePool have, as in its status.resources',
  },
  {
    name: 'nodepools_cost_total',
    type: 'gauge',
    labels: ['nodepool'],
    unit: 'price an hour',
    help: 'Price an hour of all instances of a NodePool whose price is known',
  },
  {
    name: 'nodepools_unpriced',
    type: 'gauge',
    labels: ['nodepool'],
    unit: 'instances',
    help: 'Instances of a NodePool whose price is not known, which its cost leaves out; no series when there are none',
  },
]

const nodes: readonly MetricRow[] = [
  { name: 'nodes_allocatable', ...perNode, ...resource, help: 'What pods can have of a node' },
  {
    name: 'nodes_system_overhead',
    ...perNode,
    ...resource,
    help: 'What the system of a node keeps for itself: capacity less allocatable',
  },
  {
    name: 'nodes_total_pod_requests',
    ...perNode,
    ...resource,
    help: 'What the pods on a node ask for, those of daemon sets included',
  },
  {
    name: 'nodes_total_pod_limits',
    ...perNode,
    ...resource,
    help: 'The most the pods on a node may take, those of daemon sets included',
  },
  {
    name: 'nodes_total_daemon_requests',
    ...perNode,
    ...resource,
    help: 'What pods of daemon sets on a node ask for',
  },
  {
    name: 'nodes_total_daemon_limits',
    ...perNode,
    ...resource,
    help: 'The most pods of daemon sets on a node may take',
  },
  {
    name: 'nodes_current_lifetime_seconds',
    ...perNode,
    labels: [],
    unit: 'seconds',
    help: 'Age of a node',
  },
  {
    name: 'cluster_utilization_percent',
    type: 'gauge',
    labels: ['resource_type'],
    unit: 'percent',
    help: 'Share of what all nodes have for pods that pods ask for',
  },
]

const pods: readonly MetricRow[] = [
  {
    name: 'pods_state',
    type: 'gauge',
    labels: [
      ...pod,
      'owner',
      'node',
      'scheduled',
      'nodepool',
      'zone',
      'arch',
      'capacity_type',
      'instance_type',
      'phase',
      'ready',
      'managed',
    ],
    unit: '1',
    grows: 'with the pods',
    help: '1 for each pod; owner is the path of the object that made it, node and what follows of it say where it is',
  },
  {
    name: 'pods_startup_duration_seconds',
    type: 'summary',
    labels: [],
    unit: 'seconds',
    help: 'From the creation of a pod until it is ready',
  },
  {
    name: 'pods_unstarted_time_seconds',
    ...perPod,
    help: 'How long ago a pod was created that is not ready yet',
  },
  {
    name: 'pods_bound_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'From the creation of a pod until it has a node',
  },
  {
    name: 'pods_unbound_time_seconds',
    ...perPod,
    help: 'How long ago a pod was created that has no node yet; stands still from then until it leaves phase Pending',
  },
  {
    name: 'pods_provisioning_bound_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'From the first plan for a pod until it has a node',
  },
  {
    name: 'pods_provisioning_startup_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'From the first plan for a pod until it is ready',
  },
  {
    name: 'pods_provisioning_unbound_time_seconds',
    ...perPod,
    help: 'How long there has been a plan for a pod that has no node yet',
  },
  {
    name: 'pods_provisioning_unstarted_time_seconds',
    ...perPod,
    help: 'How long there has been a plan for a pod that is not ready yet',
  },
  {
    name: 'pods_provisioning_scheduling_undecided_time_seconds',
    ...perPod,
    help: 'How long a pod has been waiting that nothing was decided about yet',
  },
]

/** Families of the state of the cluster. */
export const clusterRows: readonly MetricRow[] = prefixed('karpenter_', [...pools, ...nodes, ...pods])
