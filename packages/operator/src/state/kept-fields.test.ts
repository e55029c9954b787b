import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type DaemonSet,
  kinds,
  type KubeObject,
  type Node,
  type Pod,
  podRequests,
  type ResourceType,
} from '@tenon/api'
import { hostPortsOf, shapeProblems } from '@tenon/engine'
import { createKubeClient, type ReadFields } from '@tenon/kube'
import { VirtualClock } from '@tenon/runtime'
import {
  daemonSetFields,
  keptNode,
  keptObject,
  nodeFields,
  objectFields,
  podFields,
  PodTrimmer,
  withoutBulk,
} from './kept-fields.ts'
import { asSent } from './nodes/nodes.test-support.ts'
import { SharedParts } from './same-value.ts'

const managedFields = [{ manager: 'kubelet', fieldsV1: { 'f:status': {} } }]
const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': '{"spec":"all of it"}' }
const probe = { httpGet: { path: '/healthz', port: 8080 } }
const requests = { cpu: '250m', memory: '256Mi' }
const affinity = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { labelSelector: { matchLabels: { app: 'a' } }, topologyKey: 'kubernetes.io/hostname' },
    ],
  },
}
const claim = { name: 'data', persistentVolumeClaim: { claimName: 'data-0' } }
const scratch = {
  name: 'scratch',
  ephemeral: { volumeClaimTemplate: { spec: { storageClassName: 'fast' } } },
}
const spread = [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] as const

/** A pod as an API server shows it; every call makes objects of its own. */
function aPod(name: string, more: { readonly spec?: object; readonly status?: object } = {}): Pod {
  return asSent(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'n',
      uid: `uid-${name}`,
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      deletionTimestamp: '2026-01-02T00:00:00Z',
      labels: { app: 'a' },
      annotations: { 'karpenter.sh/do-not-disrupt': 'true', ...lastApplied },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a-1', uid: 'o' }],
      managedFields,
    },
    spec: {
      nodeName: `node-of-${name}`,
      nodeSelector: { zone: 'a' },
      affinity,
      tolerations: [{ key: 'x', operator: 'Exists' }],
      topologySpreadConstraints: spread,
      containers: [
        {
          name: 'app',
          image: 'registry/app:1',
          command: ['run'],
          args: ['--all'],
          env: [{ name: 'A', value: 'b' }],
          livenessProbe: probe,
          volumeMounts: [{ name: 'token', mountPath: '/var/run' }],
          ports: [{ containerPort: 80 }, { containerPort: 81, hostPort: 81, protocol: 'TCP' }],
          resources: { requests },
        },
      ],
      initContainers: [{ name: 'mesh', image: 'mesh', restartPolicy: 'Always', resources: { requests } }],
      overhead: { cpu: '10m' },
      volumes: [{ name: 'token', projected: { sources: [] } }, claim, scratch],
      priority: 5,
      priorityClassName: 'high',
      preemptionPolicy: 'Never',
      schedulerName: 'default-scheduler',
      schedulingGates: [{ name: 'gate' }],
      terminationGracePeriodSeconds: 30,
      restartPolicy: 'Always',
      hostNetwork: true,
      resourceClaims: [{ name: 'gpu' }],
      securityContext: {},
      serviceAccountName: 'default',
      ...more.spec,
    },
    status: {
      phase: 'Running',
      nominatedNodeName: 'x',
      reason: 'Because',
      startTime: '2026-01-01T00:00:01Z',
      podIP: '10.0.0.1',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: '0/5000 nodes are available: many reasons',
          lastProbeTime: null,
          lastTransitionTime: '2026-01-01T00:00:02Z',
        },
      ],
      containerStatuses: [
        { name: 'app', ready: true, resources: { requests }, allocatedResources: requests },
      ],
      ...more.status,
    },
  })
}

test('a cached pod keeps what decisions read, and nothing of what it runs', () => {
  const { spec, status, metadata } = new PodTrimmer().pod(aPod('p'))
  assert.deepEqual(spec, {
    nodeName: 'node-of-p',
    nodeSelector: { zone: 'a' },
    affinity,
    tolerations: [{ key: 'x', operator: 'Exists' }],
    topologySpreadConstraints: spread,
    containers: [
      {
        name: 'app',
        // On the host's network, each is a port of the host.
        ports: [{ containerPort: 80 }, { containerPort: 81, hostPort: 81, protocol: 'TCP' }],
        resources: { requests },
      },
    ],
    initContainers: [{ name: 'mesh', restartPolicy: 'Always', resources: { requests } }],
    overhead: { cpu: '10m' },
    volumes: [claim, scratch],
    priority: 5,
    priorityClassName: 'high',
    preemptionPolicy: 'Never',
    schedulerName: 'default-scheduler',
    schedulingGates: [{ name: 'gate' }],
    terminationGracePeriodSeconds: 30,
    restartPolicy: 'Always',
    hostNetwork: true,
    resourceClaims: [{ name: 'gpu' }],
  })
  assert.deepEqual(status, {
    phase: 'Running',
    nominatedNodeName: 'x',
    reason: 'Because',
    startTime: '2026-01-01T00:00:01Z',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        lastTransitionTime: '2026-01-01T00:00:02Z',
      },
    ],
  })
  const { managedFields: _, ...kept } = aPod('p').metadata
  assert.deepEqual(metadata, { ...kept, annotations: { 'karpenter.sh/do-not-disrupt': 'true' } })
})

test('of the ports of a pod with a network of its own only host ports are kept', () => {
  const { spec } = new PodTrimmer().pod(aPod('p', { spec: { hostNetwork: false } }))
  assert.deepEqual(spec.containers[0]?.ports, [{ containerPort: 81, hostPort: 81, protocol: 'TCP' }])
})

test('a pod takes as much of its node after trimming as before, also while it is resized', () => {
  const larger = { cpu: '500m', memory: '256Mi' }
  const infeasible = [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible' }]
  const statuses: object[] = [
    {},
    { containerStatuses: [{ name: 'app', resources: { requests: larger } }] },
    { containerStatuses: [{ name: 'app', resources: { requests }, allocatedResources: larger }] },
    {
      containerStatuses: [{ name: 'app', resources: { requests: { cpu: '100m' } } }],
      conditions: infeasible,
    },
    { containerStatuses: [{ name: 'app', resources: {} }], conditions: infeasible },
    { initContainerStatuses: [{ name: 'mesh', resources: { requests: larger } }] },
    { containerStatuses: [{ name: 'gone', resources: { requests: larger } }] },
  ]
  const trimmer = new PodTrimmer()
  for (const status of statuses) {
    const raw = aPod('p', { status })
    const kept = trimmer.pod(raw)
    assert.deepEqual(podRequests(kept.spec, kept.status), podRequests(raw.spec, raw.status))
    assert.deepEqual(hostPortsOf(kept.spec), hostPortsOf(raw.spec))
  }
})

test('a misshapen pod is trimmed without an error, and what is wrong with it is still seen', () => {
  const trimmer = new PodTrimmer()
  const misshapen: unknown[] = [
    { ...aPod('p'), metadata: 'p' },
    { ...aPod('p'), metadata: { name: 'p', annotations: 'a', labels: { a: 1 } } },
    { ...aPod('p'), status: 'Running' },
    aPod('p', { spec: { containers: 'none' } }),
    aPod('p', { spec: { containers: [null, 3, { name: 4, ports: 'all', resources: { requests: 'x' } }] } }),
    aPod('p', { spec: { containers: [{ name: 'a', ports: [5, { hostPort: 'x' }] }] } }),
    aPod('p', { spec: { volumes: [7, { persistentVolumeClaim: { claimName: '' } }] } }),
    aPod('p', { spec: { volumes: {}, initContainers: 9, tolerations: 3, affinity: [] } }),
    aPod('p', { status: { conditions: 'Ready', containerStatuses: [1, { name: 2, resources: 'x' }] } }),
  ]
  for (const pod of misshapen) {
    const problems = shapeProblems(pod as Pod)
    assert.ok(problems !== undefined)
    assert.deepEqual(shapeProblems(trimmer.pod(pod as Pod)), problems)
  }
})

test('RPT-39 a pod without a spec can be asked for its node, and is still misshapen', () => {
  const trimmer = new PodTrimmer()
  for (const spec of [undefined, null, 'x', []]) {
    const pod: unknown = { ...aPod('p'), spec }
    const trimmed = trimmer.pod(pod as Pod)
    assert.equal(trimmed.spec.nodeName, undefined)
    assert.ok(shapeProblems(trimmed) !== undefined)
  }
})

test('pods of one workload share what they have in common', () => {
  const trimmer = new PodTrimmer()
  const [a, b] = [trimmer.pod(aPod('a')), trimmer.pod(aPod('b'))]
  assert.equal(a.spec.containers, b.spec.containers)
  assert.equal(a.spec.affinity, b.spec.affinity)
  assert.equal(a.spec.tolerations, b.spec.tolerations)
  assert.equal(a.metadata.labels, b.metadata.labels)
  assert.equal(a.metadata.annotations, b.metadata.annotations)
  assert.equal(a.metadata.ownerReferences, b.metadata.ownerReferences)
  assert.equal(a.status?.conditions?.[0], b.status?.conditions?.[0])
  assert.notEqual(a.spec.nodeName, b.spec.nodeName)
  const other = trimmer.pod(aPod('c', { spec: { tolerations: [] } }))
  assert.deepEqual(other.spec.tolerations, [])
})

test('shared parts are forgotten when they were not asked for during two generations', () => {
  const parts = new SharedParts(2)
  const first = parts.of({ a: 1 })
  parts.of({ b: 1 })
  assert.equal(parts.of({ a: 1 }), first)
  parts.of({ c: 1 })
  assert.equal(parts.of({ a: 1 }), first)
  for (const name of ['d', 'e', 'f', 'g', 'h']) parts.of({ [name]: 1 })
  const again = { a: 1 }
  assert.equal(parts.of(again), again)
})

test('a cached node loses its images and volumes only', () => {
  const node = asSent(kinds.node, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', labels: { a: 'b' }, finalizers: ['f'], resourceVersion: '3' },
    spec: { providerID: 'p', taints: [{ key: 'k', effect: 'NoSchedule' }], unschedulable: true },
    status: {
      capacity: { cpu: '4' },
      allocatable: { cpu: '3' },
      conditions: [{ type: 'Ready', status: 'True', message: 'kubelet is ready' }],
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      nodeInfo: { kubeletVersion: 'v1.36.0' },
    },
  })
  const bulky = asSent(kinds.node, {
    ...node,
    metadata: { ...node.metadata, managedFields, annotations: lastApplied },
    status: { ...node.status, images: [{ names: ['a'] }], volumesInUse: ['v'], volumesAttached: [] },
  })
  assert.deepEqual(keptNode(bulky), { ...node, metadata: { ...node.metadata, annotations: {} } })
  for (const broken of [
    { ...node, status: null },
    { ...node, metadata: null },
  ])
    assert.deepEqual(keptNode(asSent(kinds.node, broken)), broken)
})

test('what a heartbeat leaves as it was stays one object, in nodes and in what only loses its bulk', () => {
  const aNode = (heartbeat: string): Node =>
    asSent(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n', labels: { a: 'b' }, resourceVersion: heartbeat, managedFields },
      spec: { providerID: 'p' },
      status: {
        allocatable: { cpu: '3' },
        conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: heartbeat }],
        images: [{ names: ['a'] }],
      },
    })
  for (const kept of [keptNode, keptObject<Node>]) {
    const held = kept(aNode('1'))
    const next = kept(aNode('2'), held)
    assert.deepEqual(next, kept(aNode('2')))
    const isOne = [next.spec === held.spec, next.metadata.labels === held.metadata.labels]
    assert.deepEqual([...isOne, next.status?.allocatable === held.status?.allocatable], [true, true, true])
  }
})

test('a cached daemon set keeps its selector and its trimmed template', () => {
  const { spec } = aPod('p')
  const template = { metadata: { labels: { app: 'd' } }, spec }
  const selector = { matchLabels: { app: 'd' } }
  const set = asSent(kinds.daemonSet, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'd', managedFields },
    spec: { selector, template, updateStrategy: { type: 'RollingUpdate' } },
    status: { numberReady: 3 },
  })
  const trimmer = new PodTrimmer()
  assert.deepEqual(trimmer.daemonSet(set), {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'd' },
    spec: { selector, template: { ...template, spec: trimmer.pod(aPod('p')).spec } },
  })
  const broken = asSent(kinds.daemonSet, { ...set, spec: { selector } })
  assert.deepEqual(trimmer.daemonSet(broken), withoutBulk(broken))
})

/** The object as a client reads it that is told what of it matters. */
async function asRead<T extends KubeObject>(
  object: T,
  fields: ReadFields,
  type: ResourceType = kinds.pod,
): Promise<T> {
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [object] }))
  }
  const transport = { send: () => Promise.resolve({ status: 200, headers: {}, body: body() }) }
  const client = createKubeClient({ transport, clock: new VirtualClock() })
  const { items } = await client.listing(type, { fields }, (item: unknown) => item as T)
  return items[0] as T
}

test('what is trimmed away is not even read, and all that is kept is', async () => {
  const status = { phase: 'Running', message: 'x', containerStatuses: [{ name: 'app', image: 'i' }] }
  const { pod, daemonSet } = new PodTrimmer()
  const misshapen = { ...aPod('odd'), spec: { containers: 'none', volumes: [1], nodeName: 7 }, status: 'x' }
  for (const each of [aPod('p'), aPod('q', { status }), asSent(kinds.pod, misshapen)]) {
    const read = await asRead(each, podFields)
    assert.deepEqual(pod(read), pod(each))
    assert.ok(!/managedFields|livenessProbe|last-applied|"image"/.test(JSON.stringify(read)))
  }
  const metadata = { name: 'n', labels: { a: 'b' }, annotations: { c: 'd', ...lastApplied }, managedFields }
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata,
    spec: { providerID: 'p' },
    status: { capacity: requests, images: [{ names: ['i'] }] },
  } as Node
  assert.deepEqual(keptNode(await asRead(node, nodeFields, kinds.node)), keptNode(node))
  assert.ok(!/managedFields|images/.test(JSON.stringify(await asRead(node, nodeFields, kinds.node))))
  const set: DaemonSet = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata,
    spec: { selector: { matchLabels: { a: 'b' } }, template: { metadata: {}, spec: aPod('p').spec } },
  }
  assert.deepEqual(daemonSet(await asRead(set, daemonSetFields, kinds.daemonSet)), daemonSet(set))
  const any = { ...node, kind: 'Any', more: { managedFields } }
  assert.deepEqual(
    withoutBulk(await asRead(any, objectFields, { ...kinds.node, kind: 'Any' })),
    withoutBulk(any),
  )
})

test('what a pod asks for stays one object until it changes', () => {
  const { pod } = new PodTrimmer()
  const first = pod(aPod('p', { spec: { volumes: [claim] } }))
  const second = pod(aPod('p', { spec: { volumes: [claim] }, status: { phase: 'Succeeded' } }), first)
  assert.equal(second.spec, first.spec)
  assert.notDeepEqual(second.status, first.status)
  for (const spec of [{ volumes: [scratch] }, { volumes: [claim], priority: 7 }, { nodeName: 'other' }]) {
    const other = pod(aPod('p', { spec: { volumes: [claim], ...spec } }), first)
    assert.notDeepEqual(other.spec, first.spec)
  }
})
