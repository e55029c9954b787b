/**
 * The rights of the process in the cluster of the nodes: those of the chart and of Cluster Autoscaler's manifests
 * (cluster-autoscaler.md 1.5).
 */
import type { AccessRule } from '@tenon/provider'
import { priorityExpanderConfigMap } from '../names.ts'

/** A rule, and what does not work without it, as a clause; absent if nothing does. */
export interface AutoscalerRule extends AccessRule {
  readonly optional?: string
}

const read = ['watch', 'list', 'get']

/** In the whole cluster. */
export const autoscalerClusterRules: readonly AutoscalerRule[] = [
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'], optional: 'no events are written' },
  { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  { apiGroups: [''], resources: ['nodes'], verbs: [...read, 'update'] },
  { apiGroups: [''], resources: ['pods', 'replicationcontrollers'], verbs: read },
  {
    apiGroups: [''],
    resources: ['services'],
    verbs: read,
    optional: 'default topology spread constraints are not considered',
  },
  {
    apiGroups: [''],
    resources: ['namespaces'],
    verbs: read,
    optional: 'namespace selectors of pods are not considered',
  },
  {
    apiGroups: [''],
    resources: ['persistentvolumeclaims', 'persistentvolumes'],
    verbs: read,
    optional: 'volumes are not considered',
  },
  { apiGroups: ['apps'], resources: ['daemonsets', 'replicasets', 'statefulsets'], verbs: read },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: read },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['watch', 'list'] },
  {
    apiGroups: ['storage.k8s.io'],
    resources: ['storageclasses', 'csinodes', 'csidrivers', 'csistoragecapacities', 'volumeattachments'],
    verbs: read,
    optional: 'volumes are not considered in full',
  },
  {
    apiGroups: ['resource.k8s.io'],
    resources: ['deviceclasses', 'resourceclaims', 'resourceslices'],
    verbs: read,
    optional: 'devices are not considered',
  },
  {
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['capacityquotas'],
    verbs: read,
    optional: 'CapacityQuotas are not enforced',
  },
  {
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['capacityquotas/status'],
    verbs: ['update'],
    optional: 'the status of CapacityQuotas is not written',
  },
]

/**
 * In the namespace of the lease.
 * @param names of the lease and of the status ConfigMap.
 */
export function autoscalerRules(names: {
  readonly lease: string
  readonly status: string
}): readonly AutoscalerRule[] {
  return [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [names.lease],
      verbs: ['get', 'update'],
    },
    {
      apiGroups: [''],
      resources: ['configmaps'],
      verbs: ['create'],
      optional: 'no status is written',
    },
    {
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: [names.status],
      verbs: ['get', 'update', 'delete'],
      optional: 'no status is written',
    },
    {
      apiGroups: [''],
      resources: ['configmaps'],
      verbs: ['list', 'watch'],
      optional: `changes of ConfigMap ${priorityExpanderConfigMap} are not noticed`,
    },
  ]
}
