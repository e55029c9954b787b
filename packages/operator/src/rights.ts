/**
 * The rights that the controller needs in its cluster, whatever the provider: `npm run charts` makes the roles of the
 * chart from them, and `tenon preflight` asks for each. Reading is granted for whatever a
 * setting may ask for; rights beyond that come with the setting that uses them.
 */
import { karpenterKinds } from '@tenon/api'
import type { AccessRule } from '@tenon/provider'
import { brakeName } from './state/pause.ts'

/** A setting that some rights come with. */
export type RightsSetting =
  | 'plannedPlacement'
  | 'capacityBuffer'
  | 'capacityQuota'
  | 'dynamicResources'
  | 'groupScheduling'
  | 'vpaPredictions'
  | 'secureMetrics'
  | 'surgeOnDrain'
  | 'podDeletionCost'

/** A rule of the controller's roles. */
export interface CoreRule extends AccessRule {
  /** Needed only while this is on; always, without it. */
  readonly with?: RightsSetting
  /** Why, where that is not plain. */
  readonly because?: string
}

const { group } = karpenterKinds.nodePool
/** By name too: what a list lacks is looked for before it is believed. */
const reading = ['get', 'list', 'watch']

/** Rights in the whole cluster. */
export const clusterRights: readonly CoreRule[] = [
  { apiGroups: [group], resources: ['nodepools', 'nodeclaims', 'nodeoverlays'], verbs: reading },
  { apiGroups: [group], resources: ['nodeclaims'], verbs: ['create', 'patch', 'delete'] },
  { apiGroups: [group], resources: ['nodepools'], verbs: ['patch'] },
  {
    apiGroups: [group],
    resources: ['nodepools/status', 'nodeclaims/status', 'nodeoverlays/status'],
    verbs: ['patch'],
  },
  {
    because:
      'Asked for by the admission plugin OwnerReferencesPermissionEnforcement: NodeClaims are owned by NodePools, Nodes by NodeClaims, and both keep their owner from going first.',
    apiGroups: [group],
    resources: ['nodepools/finalizers', 'nodeclaims/finalizers'],
    verbs: ['update'],
  },
  {
    apiGroups: [''],
    resources: [
      'pods',
      'nodes',
      'namespaces',
      'limitranges',
      'persistentvolumes',
      'persistentvolumeclaims',
      'services',
      'replicationcontrollers',
    ],
    verbs: reading,
  },
  { apiGroups: [''], resources: ['nodes'], verbs: ['patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['delete'] },
  { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  {
    with: 'plannedPlacement',
    because: "Nominations are part of the pods' status.",
    apiGroups: [''],
    resources: ['pods/status'],
    verbs: ['patch'],
  },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
  {
    apiGroups: ['storage.k8s.io'],
    resources: ['storageclasses', 'csinodes', 'csidrivers', 'csistoragecapacities', 'volumeattachments'],
    verbs: reading,
  },
  { apiGroups: ['apps'], resources: ['daemonsets', 'replicasets', 'statefulsets'], verbs: reading },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: reading },
  {
    with: 'capacityBuffer',
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['capacitybuffers'],
    verbs: reading,
  },
  {
    with: 'capacityBuffer',
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['capacitybuffers/status'],
    verbs: ['patch'],
  },
  { with: 'capacityBuffer', apiGroups: [''], resources: ['podtemplates'], verbs: reading },
  {
    with: 'capacityBuffer',
    because: 'The workloads that CapacityBuffers refer to are asked for one by one.',
    apiGroups: ['apps'],
    resources: ['deployments', 'replicasets', 'statefulsets'],
    verbs: ['get'],
  },
  {
    with: 'groupScheduling',
    apiGroups: ['scheduling.k8s.io', 'scheduling.x-k8s.io', 'scheduling.volcano.sh'],
    resources: ['podgroups'],
    verbs: reading,
  },
  {
    with: 'groupScheduling',
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['provisioningrequests'],
    verbs: reading,
  },
  {
    with: 'groupScheduling',
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['provisioningrequests/status'],
    verbs: ['patch'],
  },
  { with: 'groupScheduling', apiGroups: [''], resources: ['podtemplates'], verbs: reading },
  {
    with: 'dynamicResources',
    apiGroups: ['resource.k8s.io'],
    resources: ['resourceslices', 'resourceclaims', 'deviceclasses', 'devicetaintrules'],
    verbs: reading,
  },
  {
    with: 'vpaPredictions',
    apiGroups: ['autoscaling.k8s.io'],
    resources: ['verticalpodautoscalers'],
    verbs: ['list'],
  },
  {
    with: 'vpaPredictions',
    because: 'The workloads that VerticalPodAutoscalers refer to are asked for one by one.',
    apiGroups: ['apps'],
    resources: ['deployments', 'replicasets', 'statefulsets', 'daemonsets'],
    verbs: ['get'],
  },
  { with: 'vpaPredictions', apiGroups: ['batch'], resources: ['jobs', 'cronjobs'], verbs: ['get'] },
  { with: 'vpaPredictions', apiGroups: [''], resources: ['replicationcontrollers'], verbs: ['get'] },
  {
    with: 'capacityQuota',
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['capacityquotas'],
    verbs: reading,
  },
  {
    with: 'capacityQuota',
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['capacityquotas/status'],
    verbs: ['patch'],
  },
  {
    with: 'secureMetrics',
    because: 'Whoever reads the metrics is asked about.',
    apiGroups: ['authentication.k8s.io'],
    resources: ['tokenreviews'],
    verbs: ['create'],
  },
  {
    with: 'secureMetrics',
    apiGroups: ['authorization.k8s.io'],
    resources: ['subjectaccessreviews'],
    verbs: ['create'],
  },
  {
    with: 'surgeOnDrain',
    because: 'Deployments are restarted before their pods are evicted from a node.',
    apiGroups: ['apps'],
    resources: ['deployments'],
    verbs: [...reading, 'patch'],
  },
  {
    with: 'podDeletionCost',
    because: 'Pods are annotated with what deleting them costs.',
    apiGroups: [''],
    resources: ['pods'],
    verbs: ['patch'],
  },
]

/**
 * Rights in the controller's own namespace, for the lease that decides which replica leads.
 * @param leaseName name of the lease.
 */
export function leaseRights(leaseName: string): readonly CoreRule[] {
  const [apiGroups, resources] = [['coordination.k8s.io'], ['leases']]
  return [
    {
      because:
        'Rights of a name do not reach objects yet to be made, so that creating is granted for all of them.',
      apiGroups,
      resources,
      verbs: ['get', 'create'],
    },
    { apiGroups, resources, resourceNames: [leaseName], verbs: ['watch', 'patch'] },
  ]
}

/** Rights in the controller's own namespace for the ConfigMap by which disruption is paused (ask.md 8). */
export const brakeRights: readonly CoreRule[] = [
  {
    because:
      'Rights of a name do not reach objects yet to be made, so that creating is granted for all of them.',
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: ['create'],
  },
  {
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: [brakeName],
    verbs: ['list', 'watch', 'patch'],
  },
]
