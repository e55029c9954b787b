import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredObject } from '../contract.ts'
import { builtinDefinitions } from './builtin-definitions.ts'
import { fieldErrorsMessage } from './field-errors.ts'
import { aDeployment, aPod, builtin } from './fixtures.test-support.ts'
import { decodingError } from './validation/shape.ts'

function refusal(kind: string, object: StoredObject, old?: StoredObject): string {
  const definition = builtin(kind)
  const errors = definition.validate(
    definition.applyDefaults(object),
    old === undefined ? undefined : definition.applyDefaults(old),
  )
  return errors.length === 0 ? 'valid' : fieldErrorsMessage(kind, object.metadata.name, errors)
}

function row(kind: string, object: StoredObject, nowMs = 0): Record<string, unknown> {
  return Object.fromEntries(builtin(kind).columns.map((column) => [column.name, column.cell(object, nowMs)]))
}

const unreadable = (kind: string, object: StoredObject) =>
  decodingError(builtin(kind), builtin(kind).validate(object, undefined))

test('names every built-in model after its API group', () => {
  assert.equal(builtin('Pod').schema.model, 'io.k8s.api.core.v1.Pod')
  assert.equal(builtin('Deployment').schema.model, 'io.k8s.api.apps.v1.Deployment')
  assert.equal(builtin('ClusterRole').schema.model, 'io.k8s.api.rbac.v1.ClusterRole')
})

test('fills defaults once: a second pass answers the same object', () => {
  for (const definition of builtinDefinitions()) {
    const object: StoredObject = {
      apiVersion: 'v1',
      kind: definition.kind,
      metadata: { name: 'a', namespace: 'b', uid: 'c' },
      spec: {},
    }
    const filled = definition.applyDefaults(object)
    assert.equal(definition.applyDefaults(filled), filled, definition.kind)
  }
})

test('leaves out or writes zero values as the types of the API server do', () => {
  const filled = builtin('Deployment').applyDefaults({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'a' },
    spec: {
      paused: false,
      minReadySeconds: 0,
      selector: { matchLabels: { app: 'a' }, matchExpressions: [] },
      template: {
        spec: {
          hostNetwork: false,
          volumes: [{ name: 'v', emptyDir: {} }],
          containers: [
            {
              name: 'a',
              image: 'busybox',
              command: [],
              terminationMessagePath: '',
              readinessProbe: { httpGet: { port: 80, path: '' }, timeoutSeconds: 0 },
              resources: { limits: { cpu: '1' } },
            },
          ],
        },
      },
    },
  })
  const spec = filled['spec'] as Record<string, unknown> & {
    readonly template: { readonly spec: Record<string, unknown> & { readonly containers: readonly object[] } }
  }
  assert.deepEqual([Object.hasOwn(spec, 'paused'), Object.hasOwn(spec, 'minReadySeconds')], [false, false])
  assert.deepEqual(spec['selector'], { matchLabels: { app: 'a' } })
  assert.equal(Object.hasOwn(spec.template.spec, 'hostNetwork'), false)
  assert.deepEqual(spec.template.spec['volumes'], [{ name: 'v', emptyDir: {} }])
  assert.deepEqual(spec.template.spec.containers[0], {
    name: 'a',
    image: 'busybox',
    imagePullPolicy: 'Always',
    readinessProbe: {
      failureThreshold: 3,
      httpGet: { path: '/', port: 80, scheme: 'HTTP' },
      periodSeconds: 10,
      successThreshold: 1,
      timeoutSeconds: 1,
    },
    // In a template a limit is no request: that is for its pods.
    resources: { limits: { cpu: '1' } },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  })
  assert.deepEqual(filled['status'], {})
})

test('a null in a list or a map of texts is an empty one, and an AppArmor annotation is a profile', () => {
  // As a client sends it.
  const sent = JSON.parse(`{
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
      "name": "p",
      "labels": {"a": null},
      "annotations": {"container.apparmor.security.beta.kubernetes.io/a": "localhost/strict"}
    },
    "spec": {"containers": [{"name": "a", "image": "a:1", "args": [null]}]}
  }`) as StoredObject
  const pod = builtin('Pod').applyDefaults(sent)
  const { containers } = pod['spec'] as { readonly containers: readonly Record<string, unknown>[] }
  assert.deepEqual(containers[0]?.['args'], [''])
  assert.deepEqual(pod.metadata.labels, { a: '' })
  assert.deepEqual(containers[0]?.['securityContext'], {
    appArmorProfile: { type: 'Localhost', localhostProfile: 'strict' },
  })
})

test('gives a pod with limits of its own the requests of its containers', () => {
  const containers = [
    { name: 'a', image: 'a:1', resources: { requests: { cpu: '300m', memory: '64Mi' } } },
    { name: 'b', image: 'b:1', resources: { limits: { cpu: '200m' } } },
  ]
  const pod = builtin('Pod').applyDefaults(
    aPod({ containers, resources: { limits: { cpu: '2', memory: '1Gi' } } }),
  )
  const { resources } = pod['spec'] as { readonly resources: object }
  assert.deepEqual(resources, {
    limits: { cpu: '2', memory: '1Gi' },
    requests: { cpu: '500m', memory: '64Mi' },
  })
})

test('gives a pod the defaults of a real cluster and canonical amounts', () => {
  const pod = builtin('Pod').applyDefaults(
    aPod({
      containers: [{ name: 'a', image: 'busybox', resources: { limits: { cpu: 0.5, memory: '1024Mi' } } }],
    }),
  )
  const spec = pod['spec'] as {
    restartPolicy: string
    containers: { imagePullPolicy: string; resources: object }[]
  }
  assert.equal(spec.restartPolicy, 'Always')
  assert.equal(spec.containers[0]?.imagePullPolicy, 'Always')
  assert.deepEqual(spec.containers[0]?.resources, {
    limits: { cpu: '500m', memory: '1Gi' },
    requests: { cpu: '500m', memory: '1Gi' },
  })
  assert.deepEqual(pod['status'], { phase: 'Pending', qosClass: 'Guaranteed' })
})

test('ties a job to its pods by its uid', () => {
  const job = builtin('Job').applyDefaults({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'j', uid: 'u-1' },
    spec: { template: { spec: { containers: [], restartPolicy: 'Never' } } },
  })
  const spec = job['spec'] as {
    selector: unknown
    template: { metadata: { labels: Record<string, string> } }
  }
  assert.deepEqual(spec.selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u-1' } })
  assert.equal(spec.template.metadata.labels['job-name'], 'j')
})

test('keeps secret text as data', () => {
  const secret = builtin('Secret').applyDefaults({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's' },
    stringData: { token: 'abc' },
  })
  assert.deepEqual(secret['data'], { token: 'YWJj' })
  assert.equal('stringData' in secret, false)
})

test('names unknown fields by path and drops them', () => {
  const { object, unknownFields } = builtin('Pod').prune(
    aPod({ containers: [{ name: 'a', image: 'b', foo: 1 }], bar: {} }),
  )
  assert.deepEqual(unknownFields, ['spec.containers[0].foo', 'spec.bar'])
  assert.deepEqual(object['spec'], { containers: [{ name: 'a', image: 'b' }] })
})

test('answers the same object when there is nothing to prune', () => {
  const pod = aPod()
  assert.equal(builtin('Pod').prune(pod).object, pod)
})

test('refuses what users get wrong in the words of an API server', () => {
  assert.equal(refusal('Deployment', aDeployment()), 'valid')
  assert.equal(
    refusal('Deployment', aDeployment({ replicas: -1 })),
    'Deployment "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
  )
  assert.equal(
    refusal('Deployment', aDeployment({ selector: { matchLabels: { app: 'db' } } })),
    'Deployment "web" is invalid: spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
  )
  assert.equal(
    refusal('Pod', aPod({ containers: [{ image: 'x' }] })),
    'Pod "web" is invalid: spec.containers[0].name: Required value',
  )
  assert.equal(
    refusal('Pod', aPod({ restartPolicy: 'Sometimes' })),
    'Pod "web" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
  )
})

test('refuses operators that need a feature gate, and node labels that cannot be', () => {
  const tolerations = [{ key: 'rank', operator: 'Gt', value: '5', effect: 'NoSchedule' }]
  assert.match(
    refusal('Pod', aPod({ tolerations })),
    /spec.tolerations\[0\].operator: Unsupported value: "Gt"/,
  )
  const term = (value: string) => ({ matchExpressions: [{ key: 'rank', operator: 'Gt', values: [value] }] })
  const requiring = (value: string) => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term(value)] } },
  })
  assert.equal(refusal('Pod', aPod({ affinity: requiring('1') })), 'valid')
  assert.match(
    refusal('Pod', aPod({ affinity: requiring('-1') })),
    /nodeSelectorTerms\[0\].matchExpressions\[0\].values\[0\]: Invalid value: "-1": a valid label must be/,
  )
  const preference = { weight: 1, preference: term('-1') }
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [preference] }
  assert.equal(refusal('Pod', aPod({ affinity: { nodeAffinity } })), 'valid')
})

test('reports several errors in brackets', () => {
  const mount = { name: 'data', mountPath: '/data' }
  assert.equal(
    refusal(
      'Pod',
      aPod({
        containers: [
          { name: 'a', image: 'x', volumeMounts: [mount] },
          { name: 'a', image: 'x' },
        ],
      }),
    ),
    'Pod "web" is invalid: [spec.containers[0].volumeMounts[0].name: Not found: "data", spec.containers[1].name: Duplicate value: "a"]',
  )
})

test('lets a pod change its image and its node once, and little else', () => {
  assert.equal(refusal('Pod', aPod({ containers: [{ name: 'main', image: 'nginx:2' }] }), aPod()), 'valid')
  assert.equal(refusal('Pod', aPod({ nodeName: 'n1' }), aPod()), 'valid')
  assert.match(
    refusal('Pod', aPod({ nodeName: 'n2' }), aPod({ nodeName: 'n1' })),
    /spec: Forbidden: pod updates/,
  )
  assert.match(refusal('Pod', aPod({ dnsPolicy: 'Default' }), aPod()), /spec: Forbidden: pod updates/)
})

test('calls a value of the wrong type a decoding error', () => {
  assert.equal(
    unreadable('Deployment', aDeployment({ replicas: 'two' })),
    'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into field spec.replicas of type int32',
  )
})

test('shows a pod as kubectl does', () => {
  const at = '2026-01-01T00:00:00Z'
  const pod: StoredObject = {
    ...aPod({ nodeName: 'n1' }, { creationTimestamp: at }),
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      containerStatuses: [
        {
          name: 'main',
          ready: true,
          restartCount: 2,
          state: { running: {} },
          lastState: { terminated: { finishedAt: at } },
        },
      ],
    },
  }
  assert.deepEqual(row('Pod', pod, Date.parse(at) + 300_000), {
    Name: 'web',
    Ready: '1/1',
    Status: 'Running',
    Restarts: '2 (5m ago)',
    Age: '5m',
    IP: '10.0.0.1',
    Node: 'n1',
    'Nominated Node': '<none>',
    'Readiness Gates': '<none>',
  })
})

test('shows a cordoned node with its roles', () => {
  const node: StoredObject = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', labels: { 'node-role.kubernetes.io/worker': '' } },
    spec: { unschedulable: true },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.34.1' } },
  }
  const cells = row('Node', node)
  assert.equal(cells['Status'], 'Ready,SchedulingDisabled')
  assert.equal(cells['Roles'], 'worker')
  assert.equal(cells['Version'], 'v1.34.1')
})

test('reads the fields that field selectors name', () => {
  assert.equal(builtin('Pod').selectableFields(aPod({ nodeName: 'n1' }))['spec.nodeName'], 'n1')
  assert.equal(builtin('Pod').selectableFields(aPod())['spec.nodeName'], '')
})

test('refuses labels that are no text', () => {
  assert.match(
    unreadable('Pod', aPod({}, { labels: { a: 1 } })) ?? '',
    /cannot unmarshal number into field metadata\.labels\[a\] of type string/,
  )
})

test('RPT-54 a service account of a RoleBinding may leave its namespace to the binding', () => {
  const binding = (kind: string, subject: object): StoredObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind,
    metadata: { name: 'b', ...(kind === 'RoleBinding' && { namespace: 'default' }) },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [subject],
  })
  const account = { kind: 'ServiceAccount', name: 'builder' }
  assert.equal(refusal('RoleBinding', binding('RoleBinding', account)), 'valid')
  assert.equal(
    refusal('ClusterRoleBinding', binding('ClusterRoleBinding', account)),
    'ClusterRoleBinding "b" is invalid: subjects[0].namespace: Required value',
  )
  const placed = { ...account, namespace: 'default' }
  assert.equal(refusal('ClusterRoleBinding', binding('ClusterRoleBinding', placed)), 'valid')
  const grouped = { ...placed, apiGroup: 'rbac.authorization.k8s.io' }
  assert.match(
    refusal('RoleBinding', binding('RoleBinding', grouped)),
    /subjects\[0\]\.apiGroup: Unsupported/,
  )
})

test('RPT-54 rules that could never grant anything are refused as by the real server', () => {
  const role = (kind: string, rule: object): StoredObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind,
    metadata: { name: 'r', ...(kind === 'Role' && { namespace: 'default' }) },
    rules: [rule],
  })
  const urls = { nonResourceURLs: ['/healthz'], verbs: ['get'] }
  assert.equal(refusal('ClusterRole', role('ClusterRole', urls)), 'valid')
  assert.match(refusal('Role', role('Role', urls)), /namespaced rules cannot apply to non-resource URLs/)
  assert.match(refusal('Role', role('Role', { verbs: ['get'] })), /must supply at least one api group/)
})
