/** Random objects of built-in kinds. */
import { Draw } from '../scheduling-proof/objects.ts'
import type { Random } from '@tenon/runtime'
import { deviceKinds } from './device-kinds.ts'
import { type Kind, listOf, record, spec } from './kind.ts'
import { type Choices, type Fields, type Make, OddDraw, odd } from './odd-draw.ts'
import { claimSpec, labels, labelSelector, podSpec, podTemplate, podWithLabelKeys } from './pod-parts.ts'

/** An object, and where to create it. */
export interface DefaultingCase {
  readonly name: string
  readonly path: string
  readonly object: Fields
}

const amount = [0, 1, 3, odd(-1)]
const percent = [0, 1, '25%', '100%', odd('x'), odd(-1), odd('150%'), odd('5'), odd('-5%')]
const always = ['Always', odd('Never'), odd('x'), undefined]
const selected = [
  { matchLabels: { app: 'web' } },
  labelSelector,
  odd({}),
  odd({ matchLabels: { app: 'other' } }),
]

const jobFields: Readonly<Record<string, Choices>> = {
  parallelism: amount,
  completions: amount,
  backoffLimit: amount,
  activeDeadlineSeconds: [10, odd(-1)],
  ttlSecondsAfterFinished: [0, 60, odd(-1)],
  completionMode: ['NonIndexed', 'Indexed', odd('x'), odd('')],
  suspend: [true, false],
  backoffLimitPerIndex: [1, odd(-1), undefined],
  maxFailedIndexes: [odd(1), undefined, undefined],
  podReplacementPolicy: ['Failed', 'TerminatingOrFailed', odd('x')],
  managedBy: ['example.com/other', 'kubernetes.io/job-controller', odd('a b'), undefined],
  podFailurePolicy: [
    { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] },
    { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [1, 2] } }] },
    odd({ rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [2, 1] } }] }),
    odd({ rules: [{ action: 'FailIndex', onExitCodes: { operator: 'In', values: [0] } }] }),
    odd({ rules: [{ action: 'Count' }] }),
    undefined,
  ],
  successPolicy: [odd({ rules: [{ succeededCount: 1 }] }), odd({ rules: [] }), undefined, undefined],
  selector: [odd({ matchLabels: { app: 'web' } }), undefined, undefined],
  manualSelector: [odd(true), false, undefined],
}

const jobTemplate = podTemplate(['Never', 'OnFailure', 'Never', odd('Always'), odd('')])

const jobSpec: Make = (draw) => {
  const filled = draw.record({ template: [jobTemplate] }, jobFields) as Record<string, Fields | undefined>
  const pod = filled['template']?.['spec'] as Fields | undefined
  // The policy defaults to one that is invalid for Jobs.
  if (pod === undefined || pod === null || typeof pod !== 'object' || draw.draw.chance(10)) return filled
  return { ...filled, template: { ...filled['template'], spec: { restartPolicy: 'Never', ...pod } } }
}

const servicePorts: Make = (draw) =>
  draw.list(0, 3, (one, index) =>
    one.record(
      {
        port: [80 + index, 443 + index, odd(0), odd(70_000), odd(80)],
        name: [`p${index}`, odd('A'), odd('p0'), undefined],
      },
      {
        targetPort: [8080, 'http', '8080', odd(0), odd('not valid'), odd('')],
        protocol: ['TCP', 'UDP', odd('x'), odd('')],
        nodePort: [odd(30_080), odd(80), undefined, undefined],
        appProtocol: ['http', 'kubernetes.io/h2c', odd('a b')],
      },
    ),
  )

const crossReference = [
  { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
  { kind: 'Deployment', name: 'web' },
  odd({ kind: 'Deployment' }),
  odd({ kind: 'a/b', name: 'x' }),
  odd({ kind: 'Deployment', name: '' }),
]

const metricTarget: Make = (draw) =>
  draw.value([
    { type: 'Utilization', averageUtilization: 50 },
    { type: 'AverageValue', averageValue: '500m' },
    { type: 'AverageValue', averageValue: 2 },
    odd({ type: 'Value', value: '5' }),
    odd({ type: 'Utilization', averageUtilization: 0 }),
    odd({ type: 'x' }),
    odd({ type: 'Utilization', averageUtilization: 5, averageValue: '1' }),
    odd({}),
  ])

const valueTarget: Make = (draw) =>
  draw.value([
    { type: 'Value', value: '5' },
    { type: 'AverageValue', averageValue: '5' },
    odd({ type: 'Value' }),
    odd({ type: 'Utilization', averageUtilization: 5 }),
  ])

const metrics: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.value([
      (each: OddDraw) => ({
        type: 'Resource',
        resource: each.record({ name: ['cpu', 'memory', odd('')], target: [metricTarget] }),
      }),
      (each: OddDraw) => ({
        type: 'ContainerResource',
        containerResource: each.record({
          name: ['cpu'],
          container: ['main', odd('')],
          target: [metricTarget],
        }),
      }),
      (each: OddDraw) => ({
        type: 'Pods',
        pods: each.record({
          metric: [{ name: 'rps' }, odd({ name: '' }), odd({ name: 'a/b' })],
          target: [{ type: 'AverageValue', averageValue: '5' }, odd({ type: 'Value', value: '1' })],
        }),
      }),
      (each: OddDraw) => ({
        type: 'Object',
        object: each.record({
          metric: [{ name: 'rps', selector: { matchLabels: { a: 'b' } } }],
          describedObject: [{ kind: 'Service', name: 'x', apiVersion: 'v1' }, odd({ kind: 'Service' })],
          target: [valueTarget],
        }),
      }),
      (each: OddDraw) => ({
        type: 'External',
        external: each.record({ metric: [{ name: 'q' }], target: [valueTarget] }),
      }),
      odd({ type: 'Resource' }),
      odd({ type: 'x' }),
      odd({
        type: 'Resource',
        pods: { metric: { name: 'a' }, target: { type: 'AverageValue', averageValue: '1' } },
      }),
    ]),
  )

const scalingRules: Make = (draw) =>
  draw.record(
    {},
    {
      stabilizationWindowSeconds: [0, 300, odd(-1), odd(3601)],
      selectPolicy: ['Max', 'Min', 'Disabled', odd('x'), odd('')],
      policies: [
        [{ type: 'Pods', value: 4, periodSeconds: 60 }],
        [
          { type: 'Percent', value: 10, periodSeconds: 15 },
          { type: 'Pods', value: 1, periodSeconds: 15 },
        ],
        odd([{ type: 'Pods', value: 0, periodSeconds: 60 }]),
        odd([{ type: 'Pods', value: 1, periodSeconds: 1801 }]),
        odd([{ type: 'x', value: 1, periodSeconds: 1 }]),
      ],
      tolerance: [odd('0.1'), undefined, undefined, undefined],
    },
  )

const webhookClient: Make = (draw) =>
  draw.value([
    { service: { name: 'a', namespace: 'b' } },
    { service: { name: 'a', namespace: 'b', path: '/x', port: 8443 } },
    { url: 'https://example.com/x' },
    odd({ url: 'http://example.com' }),
    odd({ url: 'https://example.com/x?a=b' }),
    odd({ service: { name: 'a', namespace: 'b', port: 0 } }),
    odd({ service: { name: 'a', namespace: 'b', path: 'x' } }),
    odd({ service: { namespace: 'b' } }),
    odd({}),
    odd({ url: 'https://a', service: { name: 'a', namespace: 'b' } }),
  ])

const webhookRules: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.record(
      {
        operations: [['CREATE'], ['*'], ['CREATE', 'UPDATE'], odd([]), odd(['*', 'CREATE']), odd(['READ'])],
        apiGroups: [[''], ['*'], ['apps', 'batch'], odd([]), odd(['*', 'apps'])],
        apiVersions: [['v1'], ['*'], odd([]), odd([''])],
        resources: [
          ['pods'],
          ['*'],
          ['*/*'],
          ['pods/status'],
          odd([]),
          odd(['*', 'pods']),
          odd(['*/*', 'pods/status']),
        ],
      },
      { scope: ['*', 'Namespaced', 'Cluster', odd('x'), odd('')] },
    ),
  )

const matchConditions = [
  [{ name: 'a', expression: 'true' }],
  [],
  odd([{ name: 'a b', expression: 'true' }]),
  odd([{ name: 'a', expression: '' }]),
  odd([{ name: 'a', expression: '1 +' }]),
  odd([{ name: 'a', expression: '"x"' }]),
  odd([
    { name: 'a', expression: 'true' },
    { name: 'a', expression: 'true' },
  ]),
]

const webhookFields: Readonly<Record<string, Choices>> = {
  rules: [webhookRules],
  failurePolicy: ['Fail', 'Ignore', odd('x'), odd('')],
  matchPolicy: ['Exact', 'Equivalent', odd('x')],
  namespaceSelector: [labelSelector],
  objectSelector: [labelSelector],
  timeoutSeconds: [1, 30, odd(0), odd(31)],
  matchConditions,
}

const webhooks = (more: Readonly<Record<string, Choices>>): Make => {
  return (draw) =>
    draw.list(0, 2, (one, index) =>
      one.record(
        {
          name: [`w${index}.example.com`, odd('short'), odd('W.example.com'), odd('w0.example.com')],
          clientConfig: [webhookClient],
          sideEffects: ['None', 'NoneOnDryRun', odd('Some'), odd('x')],
          admissionReviewVersions: [['v1'], ['v1', 'v1beta1'], odd([]), odd(['v9']), odd(['v1', 'v1'])],
        },
        { ...webhookFields, ...more },
      ),
    )
}

const policyMatch: Make = (draw) =>
  draw.record(
    {
      resourceRules: [
        (one: OddDraw) =>
          one.list(0, 2, (each) =>
            each.record(
              {
                operations: [['CREATE'], ['*'], odd([]), odd(['x']), odd(['CONNECT'])],
                apiGroups: [[''], ['*'], ['apps'], odd([])],
                apiVersions: [['v1'], ['*'], odd([])],
                resources: [
                  ['pods'],
                  ['*'],
                  ['deployments', 'deployments/scale'],
                  odd([]),
                  odd(['*', 'pods']),
                ],
              },
              { scope: ['*', 'Namespaced', odd('x')], resourceNames: [['a'], odd(['a', 'a'])] },
            ),
          ),
      ],
    },
    {
      namespaceSelector: [labelSelector],
      objectSelector: [labelSelector],
      matchPolicy: ['Exact', 'Equivalent', odd('x')],
      excludeResourceRules: [
        [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
      ],
    },
  )

const policyFields: Readonly<Record<string, Choices>> = {
  failurePolicy: ['Fail', 'Ignore', odd('x'), odd('')],
  paramKind: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    odd({ kind: 'ConfigMap' }),
    odd({ apiVersion: 'a/b/c', kind: 'x' }),
  ],
  matchConditions,
  variables: [
    [{ name: 'a', expression: '1' }],
    odd([{ name: 'a b', expression: '1' }]),
    odd([{ name: 'a', expression: '1 +' }]),
    odd([
      { name: 'a', expression: '1' },
      { name: 'a', expression: '2' },
    ]),
  ],
}

const policyBinding = (more: Readonly<Record<string, Choices>>): Make =>
  spec(
    { policyName: ['policy', odd(''), odd('A B')], ...more },
    {
      paramRef: [
        { name: 'a', namespace: 'default', parameterNotFoundAction: 'Deny' },
        { selector: {}, parameterNotFoundAction: 'Allow' },
        odd({ name: 'a' }),
        odd({ name: 'a', selector: {}, parameterNotFoundAction: 'Deny' }),
        odd({ parameterNotFoundAction: 'Deny' }),
        odd({ name: 'a', parameterNotFoundAction: 'x' }),
      ],
      matchResources: [
        {},
        (one: OddDraw) =>
          one.record(
            {},
            {
              namespaceSelector: [labelSelector],
              objectSelector: [labelSelector],
              matchPolicy: ['Exact', odd('x')],
            },
          ),
        {
          resourceRules: [
            { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] },
          ],
        },
        odd({
          resourceRules: [{ operations: [], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
        }),
      ],
    },
  )

const policyRules = (isCluster: boolean): Make =>
  listOf(
    0,
    2,
    record(
      { verbs: [['get'], ['*'], ['get', 'list', 'watch'], odd([])] },
      {
        apiGroups: [[''], ['apps'], ['*']],
        resources: [['pods'], ['*'], ['pods/log']],
        resourceNames: [['a'], []],
        nonResourceURLs: isCluster
          ? [odd(['/healthz']), undefined, undefined]
          : [odd(['/healthz']), undefined, undefined, undefined],
      },
    ),
  )

const roleRules = (isCluster: boolean): Make => {
  const any = policyRules(isCluster)
  return (draw) =>
    draw.value([
      [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
      [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
      any,
      ...(isCluster
        ? [
            [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }],
            odd([{ verbs: ['get'], nonResourceURLs: ['metrics'] }]),
          ]
        : []),
    ])
}

const subjects: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.value([
      { kind: 'ServiceAccount', name: 'a', namespace: 'default' },
      { kind: 'User', name: 'me' },
      { kind: 'Group', name: 'us', apiGroup: 'rbac.authorization.k8s.io' },
      odd({ kind: 'ServiceAccount', name: 'a' }),
      odd({ kind: 'ServiceAccount', name: 'A B', namespace: 'x' }),
      odd({ kind: 'User', name: '' }),
      odd({ kind: 'Robot', name: 'x' }),
      odd({ kind: 'User', name: 'a', apiGroup: 'v1' }),
      odd({ kind: 'ServiceAccount', name: 'a', namespace: 'x', apiGroup: 'rbac.authorization.k8s.io' }),
      odd({ name: 'x' }),
      odd({ kind: 'ServiceAccount', name: 'a', namespace: 'A B' }),
    ]),
  )

const volumeSources = [
  { hostPath: { path: '/data' } },
  { hostPath: { path: '/data', type: 'Directory' } },
  { csi: { driver: 'csi.example.com', volumeHandle: 'h' } },
  {
    csi: {
      driver: 'csi.example.com',
      volumeHandle: 'h',
      fsType: 'xfs',
      readOnly: true,
      volumeAttributes: { a: 'b' },
    },
  },
  { nfs: { server: 'a', path: '/b' } },
  { local: { path: '/mnt' } },
  { iscsi: { targetPortal: '1.2.3.4:3260', iqn: 'iqn.2001-04.com.example:a', lun: 0 } },
  { rbd: { monitors: ['a'], image: 'i' } },
  { azureDisk: { diskName: 'a', diskURI: 'https://a' } },
  { scaleIO: { gateway: 'a', system: 'b', secretRef: { name: 'c', namespace: 'd' }, volumeName: 'e' } },
  odd({ csi: { driver: 'csi.example.com', volumeHandle: '' } }),
  odd({ csi: { driver: 'Bad Driver', volumeHandle: 'h' } }),
  odd({ nfs: { server: 'a', path: 'b' } }),
  odd({ hostPath: { path: '' } }),
  odd({ hostPath: { path: '/' } }),
  odd({ hostPath: { path: '/a/../b' } }),
  odd({ hostPath: { path: '/a', type: 'x' } }),
  odd({ hostPath: { path: '/a' }, nfs: { server: 'a', path: '/b' } }),
  odd({}),
]

const persistentVolume: Make = (draw) => ({
  spec: {
    ...draw.record(
      {
        capacity: [
          { storage: '1Gi' },
          { storage: '1.5Gi' },
          { storage: 5 },
          odd({}),
          odd({ storage: '0' }),
          odd({ cpu: '1' }),
          odd({ storage: '1Gi', cpu: '1' }),
        ],
        accessModes: [
          ['ReadWriteOnce'],
          ['ReadOnlyMany', 'ReadWriteMany'],
          odd([]),
          odd(['x']),
          odd(['ReadWriteOncePod', 'ReadOnlyMany']),
        ],
      },
      {
        persistentVolumeReclaimPolicy: ['Retain', 'Delete', 'Recycle', odd('x'), odd('')],
        storageClassName: ['fast', '', odd('A B')],
        volumeMode: ['Filesystem', 'Block', odd('x')],
        mountOptions: [['ro'], []],
        claimRef: [
          { name: 'a', namespace: 'default' },
          { kind: 'PersistentVolumeClaim', namespace: 'a', name: 'b' },
          {},
        ],
        nodeAffinity: [
          {
            required: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }],
            },
          },
          odd({ required: { nodeSelectorTerms: [] } }),
          odd({}),
          odd({
            required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a b', operator: 'Exists' }] }] },
          }),
        ],
        volumeAttributesClassName: [odd('gold'), undefined, undefined],
      },
    ),
    ...(draw.value(volumeSources) as Fields | null),
  },
})

const networkPorts: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.record(
      {},
      {
        port: [80, 'http', odd(0), odd('A B')],
        protocol: ['TCP', 'UDP', odd('x'), odd('')],
        endPort: [odd(90), odd(5), undefined, undefined],
      },
    ),
  )

const networkPeers: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.value([
      (each: OddDraw) => ({ podSelector: labelSelector(each) }),
      (each: OddDraw) => ({ namespaceSelector: labelSelector(each) }),
      { podSelector: {}, namespaceSelector: {} },
      { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } },
      odd({ ipBlock: { cidr: 'x' } }),
      odd({ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } }),
      odd({ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }),
      odd({}),
    ]),
  )

const ingressBackend: Make = (draw) =>
  draw.value([
    { service: { name: 'web', port: { number: 80 } } },
    { service: { name: 'web', port: { name: 'http' } } },
    { resource: { apiGroup: 'a.b', kind: 'C', name: 'd' } },
    odd({ service: { name: 'web' } }),
    odd({ service: { name: 'web', port: { number: 80, name: 'http' } } }),
    odd({ service: { name: 'web', port: { number: 70_000 } } }),
    odd({ service: { name: 'A B', port: { number: 80 } } }),
    odd({}),
    odd({ service: { name: 'web', port: { number: 80 } }, resource: { kind: 'C', name: 'd' } }),
  ])

const ingressRules: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.record(
      {},
      {
        host: ['example.com', '*.example.com', '', odd('1.2.3.4'), odd('A b'), odd('*'), odd('a.*.b')],
        http: [
          (each: OddDraw) => ({
            paths: each.list(1, 2, (path) =>
              path.record(
                {
                  pathType: ['Prefix', 'Exact', 'ImplementationSpecific', odd('x')],
                  backend: [ingressBackend],
                },
                { path: ['/', '/a', odd('a'), odd('/a//b'), odd('/a/../b'), ''] },
              ),
            ),
          }),
          odd({ paths: [] }),
        ],
      },
    ),
  )

const quotaAmounts = { cpu: '10', memory: '10Gi' }
const hard: Choices = [
  quotaAmounts,
  { pods: '5', 'requests.cpu': 2, 'limits.memory': '1.5Gi' },
  {
    'count/deployments.apps': '5',
    'requests.storage': '5Gi',
    'fast.storageclass.storage.k8s.io/requests.storage': '5Gi',
  },
  {},
  odd({ pods: '0.5' }),
  odd({ cpu: '-1' }),
  odd({ unknown: '1' }),
  odd({ 'a b': '1' }),
  odd({ 'example.com/gpu': '1' }),
  { 'requests.example.com/gpu': '1' },
]

const limitItem: Make = (draw) =>
  draw.value([
    (one: OddDraw) => ({
      type: 'Container',
      ...one.record(
        {},
        {
          default: [{ cpu: '500m' }],
          defaultRequest: [{ cpu: '100m' }],
          max: [{ cpu: '2', memory: '1Gi' }, odd({ cpu: '200m' })],
          min: [{ cpu: '50m' }, odd({ cpu: '3' })],
          maxLimitRequestRatio: [{ cpu: 20 }, odd({ cpu: '0.5' }), odd({ cpu: 100 })],
        },
      ),
    }),
    (one: OddDraw) => ({
      type: 'Pod',
      ...one.record(
        {},
        { max: [{ cpu: '4' }], min: [{ cpu: '10m' }], default: [odd({ cpu: '1' }), undefined, undefined] },
      ),
    }),
    { type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '5Gi' } },
    odd({ type: 'PersistentVolumeClaim' }),
    odd({ type: 'PersistentVolumeClaim', max: { cpu: '5' } }),
    odd({ type: 'x', max: { cpu: '5' } }),
    odd({ type: 'Container', max: { unknown: '5' } }),
    odd({ type: '' }),
  ])

const addresses: Choices = [
  ['10.0.0.1'],
  ['10.0.0.1', '10.0.0.2'],
  odd([]),
  odd(['x']),
  odd(['127.0.0.1']),
  odd(['fe80::1']),
]

const kindList: readonly Kind[] = [
  {
    apiVersion: 'v1',
    kind: 'Pod',
    resource: 'pods',
    isNamespaced: true,
    fields: (draw) => ({
      spec: podSpec({
        restartPolicies: ['Always', 'OnFailure', 'Never', odd('x'), odd('')],
        isTemplate: false,
      })(draw),
    }),
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    resource: 'deployments',
    isNamespaced: true,
    fields: spec(
      { selector: selected, template: [podTemplate(always)] },
      {
        replicas: amount,
        minReadySeconds: [0, 10, odd(-1), odd(600)],
        progressDeadlineSeconds: [600, odd(0), odd(-5)],
        revisionHistoryLimit: amount,
        paused: [true, false],
        strategy: [
          { type: 'Recreate' },
          { type: 'RollingUpdate' },
          {},
          (one: OddDraw) => ({
            ...one.record({}, { type: ['RollingUpdate'] }),
            rollingUpdate: one.record({}, { maxSurge: percent, maxUnavailable: percent }),
          }),
          odd({ type: 'Recreate', rollingUpdate: {} }),
          odd({ type: 'x' }),
        ],
      },
    ),
  },
  {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    resource: 'replicasets',
    isNamespaced: true,
    fields: spec(
      { selector: selected, template: [podTemplate(always)] },
      { replicas: amount, minReadySeconds: amount },
    ),
  },
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    resource: 'statefulsets',
    isNamespaced: true,
    fields: spec(
      {
        selector: selected,
        template: [podTemplate(always)],
        serviceName: ['web', '', undefined, odd('A B')],
      },
      {
        replicas: amount,
        podManagementPolicy: ['OrderedReady', 'Parallel', odd('x'), odd('')],
        minReadySeconds: amount,
        revisionHistoryLimit: amount,
        ordinals: [{ start: 5 }, {}, odd({ start: -1 })],
        updateStrategy: [
          { type: 'OnDelete' },
          { type: 'RollingUpdate' },
          {},
          { type: 'RollingUpdate', rollingUpdate: { partition: 2 } },
          { rollingUpdate: { maxUnavailable: 1 } },
          { rollingUpdate: { maxUnavailable: '25%', partition: 1 } },
          odd({ type: 'RollingUpdate', rollingUpdate: { partition: -1 } }),
          odd({ type: 'OnDelete', rollingUpdate: { partition: 1 } }),
          odd({ type: 'x' }),
          odd({ rollingUpdate: { maxUnavailable: 0 } }),
        ],
        persistentVolumeClaimRetentionPolicy: [
          { whenDeleted: 'Delete' },
          { whenScaled: 'Retain', whenDeleted: 'Retain' },
          {},
          odd({ whenScaled: 'x' }),
        ],
        volumeClaimTemplates: [
          (one: OddDraw) =>
            one.list(0, 2, (each, index) =>
              each.record(
                { metadata: [{ name: `data-${index}` }, odd({}), odd({ name: 'A B' })], spec: [claimSpec] },
                { apiVersion: ['v1'], kind: ['PersistentVolumeClaim'] },
              ),
            ),
        ],
      },
    ),
  },
  {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    resource: 'daemonsets',
    isNamespaced: true,
    fields: spec(
      { selector: selected, template: [podTemplate(always)] },
      {
        minReadySeconds: amount,
        revisionHistoryLimit: amount,
        updateStrategy: [
          { type: 'OnDelete' },
          {},
          (one: OddDraw) => ({
            type: 'RollingUpdate',
            rollingUpdate: one.record({}, { maxUnavailable: percent, maxSurge: percent }),
          }),
          odd({ type: 'x' }),
          odd({ type: 'OnDelete', rollingUpdate: {} }),
        ],
      },
    ),
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    resource: 'jobs',
    isNamespaced: true,
    fields: (draw) => draw.record({ spec: [jobSpec] }),
  },
  {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    resource: 'cronjobs',
    isNamespaced: true,
    fields: spec(
      {
        schedule: [
          '* * * * *',
          '@daily',
          '*/5 0-6 * * MON-FRI',
          '0 0 31 2 *',
          odd('* * * *'),
          odd('61 * * * *'),
          odd('TZ=UTC * * * * *'),
          odd(''),
          odd('@never'),
        ],
        jobTemplate: [
          (one: OddDraw) =>
            one.record(
              { spec: [jobSpec] },
              { metadata: [{ labels: { a: 'b' } }, odd({ labels: { a: 'a b' } })] },
            ),
        ],
      },
      {
        timeZone: ['Europe/Zurich', 'UTC', odd('Mars/Base'), odd(''), odd('Local')],
        concurrencyPolicy: ['Allow', 'Forbid', 'Replace', odd('x'), odd('')],
        suspend: [true],
        startingDeadlineSeconds: [10, odd(-1)],
        successfulJobsHistoryLimit: amount,
        failedJobsHistoryLimit: amount,
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'ReplicationController',
    resource: 'replicationcontrollers',
    isNamespaced: true,
    fields: spec(
      { template: [podTemplate(always)] },
      { selector: [{ app: 'web' }, odd({ app: 'x' }), {}], replicas: amount, minReadySeconds: amount },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    resource: 'podtemplates',
    isNamespaced: true,
    fields: (draw) => draw.record({ template: [podTemplate(['Always', 'Never', undefined])] }),
  },
  {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    resource: 'horizontalpodautoscalers',
    isNamespaced: true,
    fields: spec(
      { scaleTargetRef: crossReference, maxReplicas: [1, 10, odd(0)] },
      {
        minReplicas: [1, odd(0), odd(20)],
        metrics: [metrics],
        behavior: [record({}, { scaleUp: [scalingRules], scaleDown: [scalingRules] })],
      },
    ),
  },
  {
    apiVersion: 'autoscaling/v1',
    kind: 'HorizontalPodAutoscaler',
    resource: 'horizontalpodautoscalers',
    isNamespaced: true,
    fields: spec(
      { scaleTargetRef: crossReference, maxReplicas: [1, 10, odd(0)] },
      { minReplicas: [1, odd(0)], targetCPUUtilizationPercentage: [50, odd(0)] },
    ),
  },
  {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    resource: 'poddisruptionbudgets',
    isNamespaced: true,
    names: ['thing', odd('Thing')],
    fields: (draw) => ({
      spec: {
        ...(draw.value([
          { minAvailable: 1 },
          { maxUnavailable: '25%' },
          {},
          odd({ minAvailable: 1, maxUnavailable: 1 }),
          odd({ minAvailable: '150%' }),
          odd({ minAvailable: -1 }),
          odd({ maxUnavailable: 'x' }),
        ]) as Fields | null),
        ...draw.record(
          {},
          {
            selector: [labelSelector],
            unhealthyPodEvictionPolicy: ['AlwaysAllow', 'IfHealthyBudget', odd('x'), odd('')],
          },
        ),
      },
    }),
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    resource: 'persistentvolumeclaims',
    isNamespaced: true,
    fields: (draw) => draw.record({ spec: [claimSpec] }),
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    resource: 'persistentvolumes',
    isNamespaced: false,
    fields: persistentVolume,
  },
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    resource: 'storageclasses',
    isNamespaced: false,
    fields: record(
      { provisioner: ['csi.example.com', 'kubernetes.io/no-provisioner', odd(''), odd('A B')] },
      {
        reclaimPolicy: ['Delete', 'Retain', odd('Recycle'), odd('')],
        volumeBindingMode: ['Immediate', 'WaitForFirstConsumer', odd('x'), odd('')],
        allowVolumeExpansion: [true, false],
        parameters: [{ a: 'b' }, {}, odd({ '': 'x' })],
        mountOptions: [['ro']],
        allowedTopologies: [
          [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }],
          odd([{ matchLabelExpressions: [{ key: 'zone', values: [] }] }]),
          odd([{}]),
          odd([{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'a'] }] }]),
        ],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    resource: 'services',
    isNamespaced: true,
    names: ['thing', odd('1thing'), odd('a.b')],
    fields: spec(
      { ports: [servicePorts, servicePorts, odd([])] },
      {
        type: ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', odd('x'), odd('')],
        selector: [{ app: 'web' }, {}, odd({ a: 'a b' })],
        clusterIP: ['None', '', odd('x'), odd('1.2.3.4')],
        externalName: ['example.com', odd('A B')],
        sessionAffinity: ['None', 'ClientIP', odd('x')],
        sessionAffinityConfig: [odd({ clientIP: { timeoutSeconds: 5 } }), odd({}), undefined],
        externalTrafficPolicy: [odd('Local'), odd('Cluster'), undefined],
        internalTrafficPolicy: ['Local', 'Cluster', odd('x')],
        ipFamilies: [['IPv4'], odd(['IPv4', 'IPv4']), odd(['x'])],
        ipFamilyPolicy: ['SingleStack', 'PreferDualStack', odd('x')],
        publishNotReadyAddresses: [true],
        externalIPs: [['9.9.9.9'], odd(['x']), odd(['127.0.0.1'])],
        loadBalancerIP: ['1.2.3.4', ''],
        loadBalancerClass: [odd('a.b/c'), odd('a b'), undefined],
        loadBalancerSourceRanges: [['1.0.0.0/8'], odd(['x'])],
        allocateLoadBalancerNodePorts: [odd(false), undefined],
        healthCheckNodePort: [odd(30_001), undefined, undefined],
        trafficDistribution: ['PreferClose', 'PreferSameNode', odd('x')],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'LimitRange',
    resource: 'limitranges',
    isNamespaced: true,
    fields: spec({ limits: [(one: OddDraw) => one.list(0, 2, limitItem)] }),
  },
  {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    resource: 'resourcequotas',
    isNamespaced: true,
    fields: spec(
      { hard },
      {
        scopes: [
          ['NotTerminating'],
          ['BestEffort'],
          odd(['Terminating', 'NotTerminating']),
          odd(['x']),
          odd(['BestEffort', 'NotBestEffort']),
        ],
        scopeSelector: [
          { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }] },
          odd({ matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In' }] }),
          odd({ matchExpressions: [{ scopeName: 'BestEffort', operator: 'In', values: ['x'] }] }),
          odd({ matchExpressions: [{ scopeName: 'PriorityClass', operator: 'x' }] }),
        ],
      },
    ),
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    resource: 'roles',
    isNamespaced: true,
    names: ['thing', 'system:a', odd('a/b')],
    fields: record({}, { rules: [roleRules(false)] }),
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    resource: 'clusterroles',
    isNamespaced: false,
    names: ['thing', 'system:thing', odd('a/b')],
    fields: record(
      {},
      {
        rules: [roleRules(true)],
        aggregationRule: [
          { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
          odd({ clusterRoleSelectors: [] }),
          odd({ clusterRoleSelectors: [{ matchLabels: { a: 'a b' } }] }),
        ],
      },
    ),
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    resource: 'rolebindings',
    isNamespaced: true,
    fields: record(
      {
        roleRef: [
          { kind: 'Role', name: 'a', apiGroup: 'rbac.authorization.k8s.io' },
          { kind: 'ClusterRole', name: 'view' },
          odd({ kind: 'x', name: 'a' }),
          odd({ kind: 'Role' }),
          odd({ kind: 'Role', name: '' }),
          odd({ apiGroup: 'x', kind: 'Role', name: 'a' }),
        ],
      },
      { subjects: [subjects] },
    ),
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    resource: 'clusterrolebindings',
    isNamespaced: false,
    fields: record(
      {
        roleRef: [
          { kind: 'ClusterRole', name: 'view' },
          odd({ kind: 'Role', name: 'a' }),
          odd({ kind: 'ClusterRole', name: 'a/b' }),
        ],
      },
      { subjects: [subjects] },
    ),
  },
  {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    resource: 'priorityclasses',
    isNamespaced: false,
    names: ['thing', odd('system-thing')],
    fields: record(
      { value: [0, 100, -5, odd(2_000_000_000), odd(5_000_000_000)] },
      {
        globalDefault: [false],
        preemptionPolicy: ['Never', 'PreemptLowerPriority', odd('x'), odd('')],
        description: ['a', ''],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    resource: 'namespaces',
    isNamespaced: false,
    names: ['thing', odd('a.b'), odd('T')],
    fields: record(
      {},
      {
        spec: [{}, { finalizers: ['kubernetes'] }, odd({ finalizers: ['x'] }), { finalizers: ['a.b/c'] }],
        status: [{ phase: 'Terminating' }],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'Node',
    resource: 'nodes',
    isNamespaced: false,
    fields: record(
      {},
      {
        spec: [
          record(
            {},
            {
              taints: [
                [{ key: 'a', effect: 'NoSchedule' }],
                [{ key: 'a', value: 'b', effect: 'NoExecute' }],
                odd([{ key: 'a' }]),
                odd([{ key: 'a b', effect: 'NoSchedule' }]),
                odd([
                  { key: 'a', effect: 'NoSchedule' },
                  { key: 'a', effect: 'NoSchedule' },
                ]),
                odd([{ key: 'a', effect: 'x' }]),
              ],
              unschedulable: [true, false],
              providerID: ['a://b', ''],
              podCIDR: ['10.1.0.0/24', odd('x')],
              podCIDRs: [['10.1.0.0/24'], odd(['10.1.0.0/24', '10.2.0.0/24']), odd(['x'])],
            },
          ),
        ],
        status: [
          record(
            {},
            {
              capacity: [
                { cpu: '4', memory: '8Gi', pods: 110 },
                odd({ cpu: '-4' }),
                odd({ 'example.com/gpu': '0.5' }),
              ],
              allocatable: [{ cpu: '3.5' }],
              conditions: [[{ type: 'Ready', status: 'True' }]],
              addresses: [
                [{ type: 'InternalIP', address: '10.0.0.1' }],
                odd([
                  { type: 'InternalIP', address: '10.0.0.1' },
                  { type: 'InternalIP', address: '10.0.0.1' },
                ]),
              ],
            },
          ),
        ],
      },
    ),
  },
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    resource: 'csinodes',
    isNamespaced: false,
    fields: spec({
      drivers: [
        [{ name: 'csi.example.com', nodeID: 'n', topologyKeys: ['zone'] }],
        [{ name: 'csi.example.com', nodeID: 'n', topologyKeys: null, allocatable: { count: 5 } }],
        [],
        odd([{ name: 'csi.example.com', nodeID: '' }]),
        odd([{ name: 'A B', nodeID: 'n' }]),
        odd([
          { name: 'a', nodeID: 'n' },
          { name: 'a', nodeID: 'n' },
        ]),
        odd([{ name: 'a', nodeID: 'n', topologyKeys: ['zone', 'zone'] }]),
        odd([{ name: 'a', nodeID: 'n', topologyKeys: ['a b'] }]),
        odd([{ name: 'a', nodeID: 'n', allocatable: { count: -1 } }]),
      ],
    }),
  },
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    resource: 'csidrivers',
    isNamespaced: false,
    fields: spec(
      {},
      {
        attachRequired: [true, false],
        podInfoOnMount: [true],
        volumeLifecycleModes: [['Persistent'], ['Ephemeral', 'Persistent'], [], odd(['x'])],
        storageCapacity: [true],
        fsGroupPolicy: ['File', 'None', odd('x'), odd('')],
        tokenRequests: [
          [{ audience: 'a' }],
          [{ audience: '', expirationSeconds: 3600 }],
          odd([{ audience: 'a', expirationSeconds: 5 }]),
          odd([{ audience: 'a' }, { audience: 'a' }]),
        ],
        requiresRepublish: [true],
        seLinuxMount: [true],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    resource: 'configmaps',
    isNamespaced: true,
    fields: record(
      {},
      {
        data: [{ a: 'b' }, {}, { 'a.b': '' }, odd({ 'a b': 'x' }), odd({ '..': 'x' })],
        binaryData: [{ c: 'aGVsbG8=' }, odd({ c: 'not base64' }), odd({ a: 'aGVsbG8=' })],
        immutable: [true, false],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    resource: 'secrets',
    isNamespaced: true,
    fields: record(
      {},
      {
        type: [
          'Opaque',
          '',
          'example.com/x',
          odd('kubernetes.io/tls'),
          odd('kubernetes.io/dockerconfigjson'),
          odd('kubernetes.io/basic-auth'),
          odd('kubernetes.io/ssh-auth'),
          odd('kubernetes.io/service-account-token'),
        ],
        data: [{ a: 'aGVsbG8=' }, {}, odd({ a: 'x' }), odd({ 'a b': 'aGVsbG8=' })],
        stringData: [{ b: 'text' }, { c: 'more' }, {}],
        immutable: [true],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    resource: 'serviceaccounts',
    isNamespaced: true,
    fields: record(
      {},
      {
        automountServiceAccountToken: [false],
        imagePullSecrets: [[{ name: 'a' }]],
        secrets: [[{ name: 'a' }]],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'Endpoints',
    resource: 'endpoints',
    isNamespaced: true,
    fields: record(
      {},
      {
        subsets: [
          listOf(
            0,
            2,
            record(
              { addresses: [[{ ip: '10.0.0.1' }], odd([{ ip: 'x' }]), odd([])] },
              {
                ports: [
                  [{ port: 80 }],
                  [{ port: 80, name: 'a', protocol: 'UDP' }],
                  odd([{ port: 0 }]),
                  odd([{ port: 1 }, { port: 2 }]),
                ],
              },
            ),
          ),
        ],
      },
    ),
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    resource: 'endpointslices',
    isNamespaced: true,
    fields: record(
      {
        addressType: ['IPv4', 'IPv4', 'FQDN', odd('x'), odd('IPv6')],
        endpoints: [
          listOf(
            0,
            2,
            record(
              { addresses },
              {
                conditions: [{ ready: true }, {}],
                hostname: ['a', odd('A B')],
                nodeName: ['n'],
                zone: ['z'],
                hints: [{ forZones: [{ name: 'a' }] }],
              },
            ),
          ),
        ],
      },
      {
        ports: [
          [{ port: 80 }],
          [{ name: 'a', port: 80, protocol: 'UDP', appProtocol: 'http' }, { port: 90 }],
          odd([{ name: 'A B', port: 80 }]),
          odd([{ port: 80 }, { port: 90 }]),
          odd([{ protocol: 'x' }]),
          [],
        ],
      },
    ),
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    resource: 'ingresses',
    isNamespaced: true,
    fields: spec(
      { rules: [ingressRules] },
      {
        defaultBackend: [ingressBackend],
        ingressClassName: ['nginx', odd('A B'), odd('')],
        tls: [
          [{ hosts: ['a.b'], secretName: 's' }],
          [{}],
          odd([{ hosts: ['A b'] }]),
          odd([{ secretName: 'A B' }]),
        ],
      },
    ),
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    resource: 'ingressclasses',
    isNamespaced: false,
    fields: record(
      {},
      {
        spec: [
          record(
            { controller: ['a.b/c', odd('x'), odd('a b/c'), odd('')] },
            {
              parameters: [
                { kind: 'A', name: 'b' },
                { kind: 'A', name: 'b', scope: 'Namespace', namespace: 'c', apiGroup: 'x.y' },
                odd({ kind: 'A', name: 'b', scope: 'Namespace' }),
                odd({ kind: 'A', name: 'b', scope: 'x' }),
                odd({ kind: 'A', name: 'b', namespace: 'c' }),
              ],
            },
          ),
        ],
      },
    ),
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    resource: 'networkpolicies',
    isNamespaced: true,
    fields: spec(
      { podSelector: [labelSelector] },
      {
        ingress: [listOf(0, 2, record({}, { from: [networkPeers], ports: [networkPorts] }))],
        egress: [listOf(0, 2, record({}, { to: [networkPeers], ports: [networkPorts] }))],
        policyTypes: [
          ['Ingress'],
          ['Ingress', 'Egress'],
          ['Egress'],
          [],
          odd(['x']),
          odd(['Ingress', 'Egress', 'Ingress']),
        ],
      },
    ),
  },
  {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    resource: 'runtimeclasses',
    isNamespaced: false,
    fields: record(
      { handler: ['runc', odd(''), odd('A B')] },
      {
        overhead: [{ podFixed: { cpu: '100m', memory: '1.5Gi' } }, {}, odd({ podFixed: { cpu: '-1' } })],
        scheduling: [
          { nodeSelector: { a: 'b' } },
          { tolerations: [{ key: 'a', operator: 'Exists' }] },
          odd({ nodeSelector: { a: 'a b' } }),
          odd({ tolerations: [{ key: 'a', operator: 'x' }] }),
        ],
      },
    ),
  },
  {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    resource: 'leases',
    isNamespaced: true,
    fields: record(
      {},
      {
        spec: [
          record(
            {},
            {
              holderIdentity: ['me', odd('')],
              leaseDurationSeconds: [15, odd(0)],
              leaseTransitions: [0, odd(-1)],
              acquireTime: ['2026-01-01T00:00:00.000000Z', odd('2026-01-01T00:00:00Z'), odd('soon')],
              renewTime: ['2026-01-01T00:00:00.123456Z'],
            },
          ),
        ],
      },
    ),
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    resource: 'mutatingwebhookconfigurations',
    isNamespaced: false,
    fields: record(
      {},
      { webhooks: [webhooks({ reinvocationPolicy: ['Never', 'IfNeeded', odd('x'), odd('')] })] },
    ),
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    resource: 'validatingwebhookconfigurations',
    isNamespaced: false,
    fields: record({}, { webhooks: [webhooks({})] }),
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    resource: 'validatingadmissionpolicies',
    isNamespaced: false,
    fields: spec(
      {
        matchConstraints: [policyMatch],
        validations: [
          [{ expression: 'true' }],
          [
            { expression: 'object.metadata.name != "x"', message: 'no', reason: 'Forbidden' },
            { expression: '1 < 2', messageExpression: '"a" + "b"' },
          ],
          odd([]),
          odd([{ expression: '' }]),
          odd([{ expression: '1 +' }]),
          odd([{ expression: '"x"' }]),
          odd([{ expression: 'true', messageExpression: '1' }]),
          odd([{ expression: 'true', message: 'a\nb' }]),
          odd([{ expression: 'true', message: ' ' }]),
          odd([{ expression: 'true', reason: 'x' }]),
        ],
      },
      {
        ...policyFields,
        auditAnnotations: [
          [{ key: 'a', valueExpression: '"x"' }],
          odd([{ key: 'a b', valueExpression: '"x"' }]),
          odd([{ key: 'a', valueExpression: '' }]),
          odd([{ key: 'a', valueExpression: '1' }]),
        ],
      },
    ),
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    resource: 'validatingadmissionpolicybindings',
    isNamespaced: false,
    fields: policyBinding({
      validationActions: [
        ['Deny'],
        ['Warn', 'Audit'],
        odd([]),
        odd(['Deny', 'Warn']),
        odd(['x']),
        odd(['Deny', 'Deny']),
      ],
    }),
  },
  { apiVersion: 'v1', kind: 'Pod', resource: 'pods', isNamespaced: true, fields: podWithLabelKeys },
  ...deviceKinds,
]

const rates = { present: 30, odd: 25, null: 4, mistyped: 1, unknown: 1 }
/** Kinds with pods have many more fields, and one invalid field hides all others. */
const podRates = { present: 22, odd: 7, null: 2, mistyped: 0.3, unknown: 0.3 }
const withPods: ReadonlySet<string> = new Set([
  'Pod',
  'Deployment',
  'ReplicaSet',
  'StatefulSet',
  'DaemonSet',
  'Job',
  'CronJob',
  'ReplicationController',
  'PodTemplate',
])

const metadata = (kind: Kind): Make =>
  record(
    { name: kind.names ?? ['thing', odd('Thing'), odd(''), odd('a'.repeat(254))] },
    {
      labels: [labels],
      annotations: [{ a: 'b' }, {}, odd({ 'a b': 'c' })],
      finalizers: [['a.b/c'], odd(['x'])],
      generateName: ['thing-', undefined],
    },
  )

/** The case of a name and a random source; kinds take turns. */
export function drawDefaultingCase(
  index: number,
  random: Random,
  kinds: readonly Kind[] = kindList,
): DefaultingCase {
  const kind = kinds[index % kinds.length] as Kind
  const draw = new OddDraw(new Draw(random), withPods.has(kind.kind) ? podRates : rates)
  const { apiVersion, resource, isNamespaced } = kind
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
  return {
    name: `c${index}`,
    path: `${root}${isNamespaced ? '/namespaces/default' : ''}/${resource}`,
    object: {
      apiVersion,
      kind: kind.kind,
      metadata: metadata(kind)(draw),
      ...(kind.fields(draw) as Fields | null),
    },
  }
}

/** Number of kinds. */
export const kindCount: number = kindList.length

/** The kind of the case with this index. */
export function kindAt(index: number): string {
  return kindList[index % kindCount]?.kind ?? ''
}
