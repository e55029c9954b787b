/** Metrics of the cluster; only with clusterStateObservability (operations.md 9.2). */
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
    help: 'Limits of a NodePool, from spec.limits',
  },
  {
    name: 'nodepools_usage',
    type: 'gauge',
    ...resource,
    labels: ['resource_type', 'nodepool'],
    help: 'Resources of the instances of a NodePool, as in its status.resources',
  },
  {
    name: 'nodepools_cost_total',
    type: 'gauge',
    labels: ['nodepool'],
    unit: 'price an hour',
    help: 'Price per hour of all instances of a NodePool with a known price',
  },
  {
    name: 'nodepools_unpriced',
    type: 'gauge',
    labels: ['nodepool'],
    unit: 'instances',
    help: 'Instances of a NodePool without a known price, which its cost excludes; no series if there are none',
  },
]

const nodes: readonly MetricRow[] = [
  { name: 'nodes_allocatable', ...perNode, ...resource, help: 'Allocatable resources of a node' },
  {
    name: 'nodes_system_overhead',
    ...perNode,
    ...resource,
    help: 'Resources reserved for the system of a node: capacity minus allocatable',
  },
  {
    name: 'nodes_total_pod_requests',
    ...perNode,
    ...resource,
    help: 'Requests of all pods on a node, including DaemonSet pods',
  },
  {
    name: 'nodes_total_pod_limits',
    ...perNode,
    ...resource,
    help: 'Limits of all pods on a node, including DaemonSet pods',
  },
  {
    name: 'nodes_total_daemon_requests',
    ...perNode,
    ...resource,
    help: 'Requests of the DaemonSet pods on a node',
  },
  {
    name: 'nodes_total_daemon_limits',
    ...perNode,
    ...resource,
    help: 'Limits of the DaemonSet pods on a node',
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
    help: 'Requests of all pods divided by the allocatable resources of all nodes',
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
    help: '1 for each pod; owner is the path of the object that created it, node and the labels after it describe its node',
  },
  {
    name: 'pods_startup_duration_seconds',
    type: 'summary',
    labels: [],
    unit: 'seconds',
    help: 'Time from the creation of a pod until it is ready',
  },
  {
    name: 'pods_unstarted_time_seconds',
    ...perPod,
    help: 'Time since the creation of a pod that is not ready',
  },
  {
    name: 'pods_bound_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Time from the creation of a pod until it is bound',
  },
  {
    name: 'pods_unbound_time_seconds',
    ...perPod,
    help: 'Time since the creation of a pod that is not bound; constant after that until it leaves phase Pending',
  },
  {
    name: 'pods_provisioning_bound_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Time from the first plan for a pod until it is bound',
  },
  {
    name: 'pods_provisioning_startup_duration_seconds',
    type: 'histogram',
    labels: [],
    unit: 'seconds',
    buckets: durationBuckets,
    help: 'Time from the first plan for a pod until it is ready',
  },
  {
    name: 'pods_provisioning_unbound_time_seconds',
    ...perPod,
    help: 'Time since the first plan for a pod that is not bound',
  },
  {
    name: 'pods_provisioning_unstarted_time_seconds',
    ...perPod,
    help: 'Time since the first plan for a pod that is not ready',
  },
  {
    name: 'pods_provisioning_scheduling_undecided_time_seconds',
    ...perPod,
    help: 'Time that a pod without a decision has been waiting',
  },
]

export const clusterRows: readonly MetricRow[] = prefixed('karpenter_', [...pools, ...nodes, ...pods])
