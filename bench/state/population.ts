/** A large cluster as a real server would have stored it: nodes with their claims, and running pods. */
import {
  annotations,
  ConditionSet,
  formatResources,
  type InstanceType,
  kinds,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  nodeClassLabel,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
  type Pod,
  terminationFinalizer,
} from '@tenon/api'
import { defaultCatalogue } from '@tenon/provider-kwok'
import { rfc3339 } from '@tenon/runtime'

/** An object and its key in the store. */
export interface Stored {
  readonly collection: string
  readonly key: string
  readonly object: KubeObject & { readonly [field: string]: unknown }
}

export interface Size {
  readonly nodes: number
  readonly pods: number
}

const typeName = 'c-16x-amd64-linux'
const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c']
const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
const poolName = 'default'
/** Pods per ReplicaSet. */
const replicas = 20
/** Number of namespaces of the ReplicaSets. */
const namespaces = 50

const type = defaultCatalogue().find(({ name }) => name === typeName) as InstanceType
const capacity = formatResources(type.capacity)

/** UIDs in the format of API servers. */
function uid(prefix: number, index: number): string {
  return `${prefix.toString(16).padStart(8, '0')}-5ca1-4b1e-8a7e-${index.toString(16).padStart(12, '0')}`
}

const namespaceName = (index: number): string => `team-${index % namespaces}`
export const nodeName = (index: number): string => `kwok-default-${claimSuffix(index)}`
const claimSuffix = (index: number): string => index.toString(36).padStart(5, '0')

const ready = (at: string) => ({
  type: 'Ready',
  status: 'True',
  reason: 'Ready',
  message: '',
  lastTransitionTime: at,
})

/**
 * Everything, node by node.
 * @param nowMs creation time.
 */
export function* population({ nodes, pods }: Size, nowMs: number): Generator<Stored> {
  const at = rfc3339(nowMs)
  const pool = nodePool(at)
  const put = (collection: string, object: KubeObject): Stored => ({
    collection,
    key: `${object.metadata.namespace ?? ''}\u0000${object.metadata.name}`,
    object: { ...object, metadata: { ...object.metadata, resourceVersion: '1' } },
  })
  for (let index = 0; index < namespaces; index++) yield put('namespaces', namespace(index, at))
  yield put('kwoknodeclasses.karpenter.kwok.sh', {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default', uid: uid(1, 0), creationTimestamp: at, generation: 1 },
    // The default of its definition, which an API server would have stored.
    status: { conditions: [ready(at)] },
  } as KubeObject)
  yield put('nodepools.karpenter.sh', pool)
  for (let index = 0; index < nodes; index++) {
    yield put('nodeclaims.karpenter.sh', nodeClaim(index, pool, at))
    yield put('nodes', node(index, pool, at))
  }
  for (let index = 0; index < pods; index++) yield put('pods', runningPod(index, index % nodes, at))
}

function namespace(index: number, at: string): KubeObject {
  const name = namespaceName(index)
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, uid: uid(2, index), creationTimestamp: at },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  } as KubeObject
}

function nodePool(at: string): NodePool {
  const pool: NodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: poolName, uid: uid(3, 0), creationTimestamp: at, generation: 1 },
    spec: {
      disruption: {
        // Another benchmark measures consolidation, which would remove these nodes.
        consolidationPolicy: 'WhenEmpty',
        consolidateAfter: '30s',
        budgets: [{ nodes: '10%' }],
      },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef,
          requirements: [
            { key: labels.os, operator: 'In', values: ['linux'] },
            { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
          ],
        },
      },
    },
  }
  const hash = {
    [annotations.nodePoolHash]: nodePoolHash(pool),
    [annotations.nodePoolHashVersion]: nodePoolHashVersion,
  }
  return { ...pool, metadata: { ...pool.metadata, annotations: hash } }
}

function instanceLabels(index: number): Readonly<Record<string, string>> {
  const single = type.requirements.flatMap(({ key, values = [] }) =>
    values.length === 1 ? [[key, values[0]]] : [],
  )
  return {
    ...(Object.fromEntries(single) as Record<string, string>),
    [labels.zone]: zones[index % zones.length] as string,
    [labels.capacityType]: 'on-demand',
    [labels.nodePool]: poolName,
    [nodeClassLabel(nodeClassRef)]: nodeClassRef.name,
  }
}

function nodeClaim(index: number, pool: NodePool, at: string): NodeClaim {
  const claim: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name: `default-${claimSuffix(index)}`,
      uid: uid(4, index),
      creationTimestamp: at,
      generation: 1,
      finalizers: [terminationFinalizer],
      labels: instanceLabels(index),
      annotations: pool.metadata.annotations ?? {},
      ownerReferences: [
        {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodePool',
          name: poolName,
          uid: uid(3, 0),
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      expireAfter: 'Never',
      nodeClassRef,
      requirements: [
        { key: labels.instanceType, operator: 'In', values: [typeName] },
        { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
        { key: labels.os, operator: 'In', values: ['linux'] },
      ],
      resources: { requests: { cpu: '6', memory: '12Gi', pods: '20' } },
    },
    status: {
      providerID: `kwok://${nodeName(index)}`,
      nodeName: nodeName(index),
      capacity,
      allocatable: capacity,
      lastPodEventTime: at,
    },
  }
  return { ...claim, status: { ...claim.status, conditions: conditionsAtRest(claim, at) } }
}

/** The conditions of a claim after initialization. */
function conditionsAtRest(claim: NodeClaim, at: string): ConditionSet['conditions'] {
  const dependents = ['Launched', 'Registered', 'Initialized']
  return [...dependents, 'ConsistentStateFound', 'Consolidatable'].reduce(
    (set, condition) => set.set({ type: condition, status: 'True' }, Date.parse(at)),
    ConditionSet.of(claim, { dependents }),
  ).conditions
}

function node(index: number, pool: NodePool, at: string): Node {
  const name = nodeName(index)
  const condition = (kind: string, status: 'True' | 'False', reason: string) => ({
    type: kind,
    status,
    reason,
    message: `kubelet has ${reason}`,
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  })
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: uid(5, index),
      creationTimestamp: at,
      finalizers: [terminationFinalizer],
      labels: {
        ...instanceLabels(index),
        [labels.hostname]: name,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
      },
      annotations: {
        ...pool.metadata.annotations,
        'karpenter.kwok.sh/node-claim': `default-${claimSuffix(index)}`,
      },
      ownerReferences: [
        {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodeClaim',
          name: `default-${claimSuffix(index)}`,
          uid: uid(4, index),
          blockOwnerDeletion: true,
        },
      ],
      managedFields: nodeFields,
    },
    spec: { providerID: `kwok://${name}` },
    status: {
      capacity,
      allocatable: capacity,
      phase: 'Running',
      addresses: [{ type: 'InternalIP', address: address(index) }],
      conditions: [
        condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory'),
        condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure'),
        condition('PIDPressure', 'False', 'KubeletHasSufficientPID'),
        condition('Ready', 'True', 'KubeletReady'),
      ],
      nodeInfo,
      images: Array.from({ length: 20 }, (_, image) => ({
        names: [`registry.example.com/images/service-${image}@sha256:${'ab'.repeat(32)}`],
        sizeBytes: 50_000_000 + image,
      })),
    },
  } as unknown as Node
}

const address = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`

/** An unbound pod of a ReplicaSet. */
export function newPod(index: number, at: string): Pod {
  const set = Math.floor(index / replicas)
  const app = `service-${set}`
  const controller = `${app}-6d5f7c9b84`
  return {
    apiVersion: 'v1',
    kind: kinds.pod.kind,
    metadata: {
      name: `${controller}-${claimSuffix(index)}`,
      generateName: `${controller}-`,
      namespace: namespaceName(set),
      uid: uid(6, index),
      creationTimestamp: at,
      labels: {
        app,
        'app.kubernetes.io/instance': app,
        'pod-template-hash': '6d5f7c9b84',
        team: namespaceName(set),
      },
      annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9090' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: controller,
          uid: uid(7, set),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: podFields,
    },
    spec: {
      containers: [container(app, '250m', '512Mi', 8080), container('proxy', '50m', '64Mi', 15_090)],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      serviceAccount: 'default',
      volumes: [{ name: tokenVolume, projected: { sources: tokenSources, defaultMode: 420 } }],
      schedulerName: 'default-scheduler',
      securityContext: {},
      tolerations: [
        {
          key: 'node.kubernetes.io/not-ready',
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 300,
        },
        {
          key: 'node.kubernetes.io/unreachable',
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 300,
        },
      ],
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
      priority: 0,
    },
    status: { phase: 'Pending', qosClass: 'Burstable' },
  } as unknown as Pod
}

/** The status of a running pod, as a kubelet reports it. */
export function runningStatus(index: number, at: string, restarts = 0): Pod['status'] {
  const isTrue = (kind: string) => ({
    type: kind,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: at,
  })
  const started = (name: string) => ({
    name,
    ready: true,
    started: true,
    restartCount: restarts,
    image: `registry.example.com/images/${name}:1.27.3`,
    imageID: `registry.example.com/images/${name}@sha256:${'cd'.repeat(32)}`,
    containerID: `containerd://${index.toString(16).padStart(64, 'e')}`,
    state: { running: { startedAt: at } },
    lastState: {},
  })
  return {
    phase: 'Running',
    qosClass: 'Burstable',
    hostIP: address(index % 5000),
    hostIPs: [{ ip: address(index % 5000) }],
    podIP: address(index + 65_536),
    podIPs: [{ ip: address(index + 65_536) }],
    startTime: at,
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(
      isTrue,
    ),
    containerStatuses: [started(`service-${Math.floor(index / replicas)}`), started('proxy')],
  } as unknown as Pod['status']
}

function runningPod(index: number, onNode: number, at: string): Pod {
  const pod = newPod(index, at)
  return {
    ...pod,
    spec: { ...pod.spec, nodeName: nodeName(onNode) },
    status: runningStatus(index, at),
  } as Pod
}

function container(name: string, cpu: string, memory: string, port: number): object {
  const probe = (path: string) => ({
    httpGet: { path, port, scheme: 'HTTP' },
    initialDelaySeconds: 5,
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  return {
    name,
    image: `registry.example.com/images/${name}:1.27.3`,
    ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
    env: [
      { name: 'LOG_LEVEL', value: 'info' },
      { name: 'SERVICE', value: name },
      { name: 'POD_IP', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } } },
      { name: 'DATABASE', valueFrom: { secretKeyRef: { name: `${name}-database`, key: 'url' } } },
      { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector.observability:4317' },
    ],
    resources: { requests: { cpu, memory }, limits: { memory } },
    livenessProbe: probe('/livez'),
    readinessProbe: probe('/readyz'),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
    volumeMounts: [
      { name: tokenVolume, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ],
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
  }
}

/** The service account volume that API servers add to every pod. */
const tokenVolume = 'kube-api-access-x7k2p'
const tokenSources = [
  { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
  { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  {
    downwardAPI: {
      items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
    },
  },
]

const nodeInfo = {
  architecture: 'amd64',
  operatingSystem: 'linux',
  kubeletVersion: 'v1.34.1',
  kubeProxyVersion: '',
  containerRuntimeVersion: 'containerd://2.0.4',
  kernelVersion: '6.12.0',
  osImage: 'Linux',
  machineID: '',
  systemUUID: '',
  bootID: '',
}

/** Managed fields for every field of a sample. */
function owned(manager: string, sample: object, subresource?: string): object {
  const fields = (value: unknown): object =>
    typeof value !== 'object' || value === null
      ? {}
      : Array.isArray(value)
        ? Object.fromEntries(
            value.map((each, index) => [`k:{"name":"${index}"}`, { '.': {}, ...fields(each) }]),
          )
        : Object.fromEntries(Object.entries(value).map(([key, each]) => [`f:${key}`, fields(each)]))
  return {
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: fields(sample),
    ...(subresource !== undefined && { subresource }),
  }
}

const podFields = [
  owned('kube-controller-manager', {
    metadata: { labels: { app: '', team: '' }, ownerReferences: [{}] },
    spec: { containers: [container('main', '1', '1Gi', 1), container('proxy', '1', '1Gi', 1)] },
  }),
  owned('kubelet', { status: runningStatus(0, '2026-01-01T00:00:00Z') }, 'status'),
]

const nodeFields = [
  owned(
    'kubelet',
    { status: { capacity, allocatable: capacity, conditions: [{}, {}, {}, {}], nodeInfo } },
    'status',
  ),
]
