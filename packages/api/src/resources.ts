import type {
  DeviceClass,
  DeviceTaintRule,
  ResourceClaim,
  ResourceClaimTemplate,
  ResourceSlice,
} from './devices.ts'
import type {
  ConfigMap,
  CsiDriver,
  CsiNode,
  CsiStorageCapacity,
  DaemonSet,
  KubeObject,
  Lease,
  LimitRange,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PodTemplate,
  ReplicationController,
  Secret,
  SelectingWorkload,
  Deployment,
  Service,
  StorageClass,
  VolumeAttachment,
} from './objects.ts'

/** Where the API server serves a kind. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  /** Lower-case plural, as in URLs. */
  readonly plural: string
  readonly namespaced: boolean
  /** Only for the type checker; never set. */
  readonly objectType?: T
}

export function apiVersionOf(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`
}

/** Path of a collection, or of one object if `name` is given. */
export function pathOf(type: ResourceType, namespace?: string, name?: string, subresource?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`
  const scope = type.namespaced && namespace !== undefined ? `/namespaces/${namespace}` : ''
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`
  return `${root}${scope}/${type.plural}${object}${subresource === undefined ? '' : `/${subresource}`}`
}

function core<T extends KubeObject>(kind: string, plural: string, namespaced: boolean): ResourceType<T> {
  return { group: '', version: 'v1', kind, plural, namespaced }
}

function grouped<T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced: boolean,
): ResourceType<T> {
  return { group, version, kind, plural, namespaced }
}

/** Built-in kinds that Tenon uses. */
export const kinds = {
  pod: core<Pod>('Pod', 'pods', true),
  node: core<Node>('Node', 'nodes', false),
  namespace: core<Namespace>('Namespace', 'namespaces', false),
  secret: core<Secret>('Secret', 'secrets', true),
  configMap: core<ConfigMap>('ConfigMap', 'configmaps', true),
  podTemplate: core<PodTemplate>('PodTemplate', 'podtemplates', true),
  event: core<KubeObject>('Event', 'events', true),
  persistentVolumeClaim: core<PersistentVolumeClaim>('PersistentVolumeClaim', 'persistentvolumeclaims', true),
  persistentVolume: core<PersistentVolume>('PersistentVolume', 'persistentvolumes', false),
  service: core<Service>('Service', 'services', true),
  replicationController: core<ReplicationController>('ReplicationController', 'replicationcontrollers', true),
  deployment: grouped<Deployment>('apps', 'v1', 'Deployment', 'deployments', true),
  replicaSet: grouped<SelectingWorkload>('apps', 'v1', 'ReplicaSet', 'replicasets', true),
  statefulSet: grouped<SelectingWorkload>('apps', 'v1', 'StatefulSet', 'statefulsets', true),
  daemonSet: grouped<DaemonSet>('apps', 'v1', 'DaemonSet', 'daemonsets', true),
  limitRange: core<LimitRange>('LimitRange', 'limitranges', true),
  podDisruptionBudget: grouped<PodDisruptionBudget>(
    'policy',
    'v1',
    'PodDisruptionBudget',
    'poddisruptionbudgets',
    true,
  ),
  lease: grouped<Lease>('coordination.k8s.io', 'v1', 'Lease', 'leases', true),
  storageClass: grouped<StorageClass>('storage.k8s.io', 'v1', 'StorageClass', 'storageclasses', false),
  csiDriver: grouped<CsiDriver>('storage.k8s.io', 'v1', 'CSIDriver', 'csidrivers', false),
  csiNode: grouped<CsiNode>('storage.k8s.io', 'v1', 'CSINode', 'csinodes', false),
  csiStorageCapacity: grouped<CsiStorageCapacity>(
    'storage.k8s.io',
    'v1',
    'CSIStorageCapacity',
    'csistoragecapacities',
    true,
  ),
  volumeAttachment: grouped<VolumeAttachment>(
    'storage.k8s.io',
    'v1',
    'VolumeAttachment',
    'volumeattachments',
    false,
  ),
  resourceSlice: grouped<ResourceSlice>('resource.k8s.io', 'v1', 'ResourceSlice', 'resourceslices', false),
  resourceClaim: grouped<ResourceClaim>('resource.k8s.io', 'v1', 'ResourceClaim', 'resourceclaims', true),
  resourceClaimTemplate: grouped<ResourceClaimTemplate>(
    'resource.k8s.io',
    'v1',
    'ResourceClaimTemplate',
    'resourceclaimtemplates',
    true,
  ),
  deviceClass: grouped<DeviceClass>('resource.k8s.io', 'v1', 'DeviceClass', 'deviceclasses', false),
} as const

/** DeviceTaintRule has one version in Kubernetes 1.37 and another in 1.36. A cluster serves none, one or both. */
export const deviceTaintRuleKinds = {
  v1: deviceTaintRule('v1'),
  v1beta2: deviceTaintRule('v1beta2'),
} as const

function deviceTaintRule(version: string): ResourceType<DeviceTaintRule> {
  return grouped('resource.k8s.io', version, 'DeviceTaintRule', 'devicetaintrules', false)
}
