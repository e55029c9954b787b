import type { TableColumn } from '../contract.ts'
import * as cluster from './columns/cluster.ts'
import * as network from './columns/network.ts'
import { nodeColumns } from './columns/nodes.ts'
import { podColumns } from './columns/pods.ts'
import * as storage from './columns/storage-and-policy.ts'
import * as workloads from './columns/workloads.ts'

/** Names and columns of a built-in kind; its schema comes from `model`. */
export interface BuiltinKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  /** Generated model of one object. */
  readonly model: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly string[]
  readonly columns: readonly TableColumn[]
  /** Whether a spec change increments `metadata.generation`. */
  readonly hasGeneration: boolean
}

interface KindFacts {
  /** Default: `V1` and the kind. */
  readonly model?: string
  readonly cluster?: true
  readonly short?: string
  /** In the category `all`. */
  readonly all?: true
  readonly sub?: string
  readonly columns?: readonly TableColumn[]
  readonly generation?: true
}

type KindRow = readonly [kind: string, plural: string, facts?: KindFacts]

const workload = { all: true, generation: true } as const

const coreKinds: readonly KindRow[] = [
  [
    'Pod',
    'pods',
    {
      short: 'po',
      all: true,
      columns: podColumns,
      generation: true,
      sub: 'status binding eviction ephemeralcontainers resize log exec attach portforward proxy',
    },
  ],
  ['PodTemplate', 'podtemplates', { columns: workloads.podTemplateColumns, generation: true }],
  [
    'ReplicationController',
    'replicationcontrollers',
    {
      ...workload,
      short: 'rc',
      sub: 'status scale',
      columns: workloads.replicationControllerColumns,
    },
  ],
  ['Node', 'nodes', { cluster: true, short: 'no', sub: 'status proxy', columns: nodeColumns }],
  [
    'Namespace',
    'namespaces',
    {
      cluster: true,
      short: 'ns',
      sub: 'status finalize',
      columns: cluster.namespaceColumns,
    },
  ],
  ['Service', 'services', { short: 'svc', all: true, sub: 'status proxy', columns: network.serviceColumns }],
  ['Endpoints', 'endpoints', { short: 'ep', columns: network.endpointsColumns }],
  ['ConfigMap', 'configmaps', { short: 'cm', columns: cluster.configMapColumns }],
  ['Secret', 'secrets', { columns: cluster.secretColumns }],
  [
    'ServiceAccount',
    'serviceaccounts',
    { short: 'sa', sub: 'token', columns: cluster.serviceAccountColumns },
  ],
  ['Event', 'events', { model: 'CoreV1Event', short: 'ev', columns: cluster.eventColumns }],
  [
    'PersistentVolume',
    'persistentvolumes',
    {
      cluster: true,
      short: 'pv',
      sub: 'status',
      columns: storage.persistentVolumeColumns,
    },
  ],
  [
    'PersistentVolumeClaim',
    'persistentvolumeclaims',
    {
      short: 'pvc',
      sub: 'status',
      columns: storage.persistentVolumeClaimColumns,
    },
  ],
  ['LimitRange', 'limitranges', { short: 'limits', columns: cluster.createdAtColumns }],
  [
    'ResourceQuota',
    'resourcequotas',
    { short: 'quota', sub: 'status', columns: storage.resourceQuotaColumns },
  ],
  ['Binding', 'bindings'],
]

const appsKinds: readonly KindRow[] = [
  [
    'Deployment',
    'deployments',
    {
      ...workload,
      short: 'deploy',
      sub: 'status scale',
      columns: workloads.deploymentColumns,
    },
  ],
  [
    'ReplicaSet',
    'replicasets',
    { ...workload, short: 'rs', sub: 'status scale', columns: workloads.replicaSetColumns },
  ],
  [
    'StatefulSet',
    'statefulsets',
    {
      ...workload,
      short: 'sts',
      sub: 'status scale',
      columns: workloads.statefulSetColumns,
    },
  ],
  [
    'DaemonSet',
    'daemonsets',
    { ...workload, short: 'ds', sub: 'status', columns: workloads.daemonSetColumns },
  ],
  ['ControllerRevision', 'controllerrevisions', { columns: workloads.controllerRevisionColumns }],
]

const storageKinds: readonly KindRow[] = [
  ['StorageClass', 'storageclasses', { cluster: true, short: 'sc', columns: storage.storageClassColumns }],
  ['CSINode', 'csinodes', { cluster: true, columns: storage.csiNodeColumns }],
  ['CSIDriver', 'csidrivers', { cluster: true, columns: storage.csiDriverColumns }],
  [
    'VolumeAttachment',
    'volumeattachments',
    { cluster: true, sub: 'status', columns: storage.volumeAttachmentColumns },
  ],
  ['CSIStorageCapacity', 'csistoragecapacities', { columns: storage.csiStorageCapacityColumns }],
  [
    'VolumeAttributesClass',
    'volumeattributesclasses',
    {
      cluster: true,
      short: 'vac',
      columns: storage.volumeAttributesClassColumns,
    },
  ],
]

const rbacKinds: readonly KindRow[] = [
  ['Role', 'roles', { columns: cluster.createdAtColumns }],
  ['RoleBinding', 'rolebindings', { columns: cluster.roleBindingColumns }],
  ['ClusterRole', 'clusterroles', { cluster: true, columns: cluster.createdAtColumns }],
  ['ClusterRoleBinding', 'clusterrolebindings', { cluster: true, columns: cluster.roleBindingColumns }],
]

const networkKinds: readonly KindRow[] = [
  [
    'Ingress',
    'ingresses',
    { short: 'ing', sub: 'status', columns: network.ingressColumns, generation: true },
  ],
  [
    'NetworkPolicy',
    'networkpolicies',
    { short: 'netpol', columns: network.networkPolicyColumns, generation: true },
  ],
  [
    'IngressClass',
    'ingressclasses',
    { cluster: true, columns: network.ingressClassColumns, generation: true },
  ],
]

const admissionKinds: readonly KindRow[] = [
  [
    'MutatingWebhookConfiguration',
    'mutatingwebhookconfigurations',
    {
      cluster: true,
      columns: cluster.webhookColumns,
      generation: true,
    },
  ],
  [
    'ValidatingWebhookConfiguration',
    'validatingwebhookconfigurations',
    {
      cluster: true,
      columns: cluster.webhookColumns,
      generation: true,
    },
  ],
  [
    'ValidatingAdmissionPolicy',
    'validatingadmissionpolicies',
    { cluster: true, sub: 'status', generation: true },
  ],
  [
    'ValidatingAdmissionPolicyBinding',
    'validatingadmissionpolicybindings',
    { cluster: true, generation: true },
  ],
  ['MutatingAdmissionPolicy', 'mutatingadmissionpolicies', { cluster: true, generation: true }],
  ['MutatingAdmissionPolicyBinding', 'mutatingadmissionpolicybindings', { cluster: true, generation: true }],
]

const resourceKinds: readonly KindRow[] = [
  [
    'ResourceClaim',
    'resourceclaims',
    {
      model: 'ResourceV1ResourceClaim',
      sub: 'status',
      columns: storage.resourceClaimColumns,
    },
  ],
  ['ResourceClaimTemplate', 'resourceclaimtemplates'],
  [
    'ResourceSlice',
    'resourceslices',
    { cluster: true, columns: storage.resourceSliceColumns, generation: true },
  ],
  ['DeviceClass', 'deviceclasses', { cluster: true, generation: true }],
]

/** Groups in the order in which their models are named: the core group first, as it owns the pod template. */
const groups: readonly (readonly [groupVersion: string, kinds: readonly KindRow[]])[] = [
  ['v1', coreKinds],
  ['apps/v1', appsKinds],
  [
    'batch/v1',
    [
      ['Job', 'jobs', { ...workload, sub: 'status', columns: workloads.jobColumns }],
      ['CronJob', 'cronjobs', { ...workload, short: 'cj', sub: 'status', columns: workloads.cronJobColumns }],
    ],
  ],
  [
    'policy/v1',
    [
      [
        'PodDisruptionBudget',
        'poddisruptionbudgets',
        {
          short: 'pdb',
          sub: 'status',
          columns: storage.podDisruptionBudgetColumns,
          generation: true,
        },
      ],
    ],
  ],
  ['coordination.k8s.io/v1', [['Lease', 'leases', { columns: cluster.leaseColumns }]]],
  [
    'discovery.k8s.io/v1',
    [['EndpointSlice', 'endpointslices', { columns: network.endpointSliceColumns, generation: true }]],
  ],
  [
    'events.k8s.io/v1',
    [['Event', 'events', { model: 'EventsV1Event', short: 'ev', columns: cluster.eventColumns }]],
  ],
  ['storage.k8s.io/v1', storageKinds],
  [
    'scheduling.k8s.io/v1',
    [
      [
        'PriorityClass',
        'priorityclasses',
        {
          cluster: true,
          short: 'pc',
          columns: cluster.priorityClassColumns,
          generation: true,
        },
      ],
    ],
  ],
  [
    'scheduling.k8s.io/v1alpha2',
    [
      ['Workload', 'workloads', { model: 'V1alpha2Workload' }],
      [
        'PodGroup',
        'podgroups',
        { model: 'V1alpha2PodGroup', sub: 'status', columns: workloads.podGroupColumns },
      ],
    ],
  ],
  ['rbac.authorization.k8s.io/v1', rbacKinds],
  ['networking.k8s.io/v1', networkKinds],
  [
    'autoscaling/v2',
    [
      [
        'HorizontalPodAutoscaler',
        'horizontalpodautoscalers',
        {
          model: 'V2HorizontalPodAutoscaler',
          short: 'hpa',
          all: true,
          sub: 'status',
          columns: storage.autoscalerColumns,
        },
      ],
    ],
  ],
  [
    'autoscaling/v1',
    [
      [
        'HorizontalPodAutoscaler',
        'horizontalpodautoscalers',
        {
          short: 'hpa',
          all: true,
          sub: 'status',
          columns: storage.autoscalerColumns,
        },
      ],
    ],
  ],
  ['admissionregistration.k8s.io/v1', admissionKinds],
  [
    'apiextensions.k8s.io/v1',
    [
      [
        'CustomResourceDefinition',
        'customresourcedefinitions',
        {
          cluster: true,
          short: 'crd crds',
          sub: 'status',
          columns: cluster.createdAtColumns,
          generation: true,
        },
      ],
    ],
  ],
  [
    'apiregistration.k8s.io/v1',
    [['APIService', 'apiservices', { cluster: true, sub: 'status', columns: cluster.apiServiceColumns }]],
  ],
  [
    'certificates.k8s.io/v1',
    [
      [
        'CertificateSigningRequest',
        'certificatesigningrequests',
        {
          cluster: true,
          short: 'csr',
          sub: 'status approval',
          columns: cluster.signingRequestColumns,
        },
      ],
    ],
  ],
  [
    'node.k8s.io/v1',
    [['RuntimeClass', 'runtimeclasses', { cluster: true, columns: cluster.runtimeClassColumns }]],
  ],
  ['resource.k8s.io/v1', resourceKinds],
  [
    'resource.k8s.io/v1beta2',
    [
      [
        'DeviceTaintRule',
        'devicetaintrules',
        { model: 'V1beta2DeviceTaintRule', cluster: true, sub: 'status', generation: true },
      ],
    ],
  ],
  [
    'flowcontrol.apiserver.k8s.io/v1',
    [
      [
        'FlowSchema',
        'flowschemas',
        {
          cluster: true,
          sub: 'status',
          columns: storage.flowSchemaColumns,
          generation: true,
        },
      ],
      [
        'PriorityLevelConfiguration',
        'prioritylevelconfigurations',
        { cluster: true, sub: 'status', generation: true },
      ],
    ],
  ],
]

function words(text: string | undefined): readonly string[] {
  return text === undefined ? [] : text.split(' ')
}

function builtinKind(groupVersion: string, [kind, plural, facts = {}]: KindRow): BuiltinKind {
  const slash = groupVersion.indexOf('/')
  return {
    group: slash < 0 ? '' : groupVersion.slice(0, slash),
    version: groupVersion.slice(slash + 1),
    kind,
    plural,
    model: facts.model ?? `V1${kind}`,
    namespaced: facts.cluster !== true,
    shortNames: words(facts.short),
    categories: [
      ...(facts.all === true ? ['all'] : []),
      ...(kind === 'CustomResourceDefinition' ? ['api-extensions'] : []),
    ],
    subresources: words(facts.sub),
    columns: facts.columns ?? cluster.plainColumns,
    hasGeneration: facts.generation === true,
  }
}

export const builtinKinds: readonly BuiltinKind[] = groups.flatMap(([groupVersion, kinds]) =>
  kinds.map((row) => builtinKind(groupVersion, row)),
)
