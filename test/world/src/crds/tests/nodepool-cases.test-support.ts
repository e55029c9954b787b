/** NodePool: every rule of api.md 3 at least once both ways; requirements and taints are in their own files. */
import { accepts, type CrdCase, numbered, refuses } from './crd-case.test-support.ts'
import { aNodePool, poolLabelled, poolOf, poolRefersTo } from './manifests.test-support.ts'

const disrupt = (disruption: unknown) => aNodePool({ disruption })
const budget = (fields: object) => disrupt({ budgets: [fields] })

const defaultDisruption = {
  consolidateAfter: '0s',
  consolidationPolicy: 'WhenEmptyOrUnderutilized',
  budgets: [{ nodes: '10%' }],
}

const defaults: readonly CrdCase[] = [
  {
    name: 'API-1 the smallest NodePool gets its defaults',
    create: aNodePool(),
    stored: {
      'spec.disruption': defaultDisruption,
      'spec.template.spec.expireAfter': '720h',
      'spec.template.spec.terminationGracePeriod': undefined,
      'spec.weight': undefined,
      'spec.replicas': undefined,
      status: undefined,
    },
  },
  {
    name: 'API-5 disruption without consolidateAfter on a dynamic pool',
    create: disrupt({ consolidationPolicy: 'WhenEmpty' }),
    stored: { 'spec.disruption.consolidateAfter': '0s', 'spec.disruption.budgets': [{ nodes: '10%' }] },
  },
  {
    name: 'API-5 disruption without consolidateAfter on a static pool',
    create: aNodePool({ replicas: 1, disruption: {} }),
    stored: { 'spec.disruption': defaultDisruption },
  },
  {
    name: 'API-63 an empty list of budgets stays empty',
    create: disrupt({ budgets: [] }),
    stored: { 'spec.disruption.budgets': [] },
  },
  {
    name: 'a budget without nodes gets 10%',
    create: disrupt({ budgets: [{}] }),
    stored: { 'spec.disruption.budgets': [{ nodes: '10%' }] },
  },
  {
    name: 'API-62 an empty list of reasons stays empty',
    create: budget({ nodes: '0', reasons: [] }),
    stored: { 'spec.disruption.budgets': [{ nodes: '0', reasons: [] }] },
  },
  {
    name: 'API-101 disruption null',
    create: disrupt(null),
    stored: { 'spec.disruption': defaultDisruption },
  },
  {
    name: 'API-101 budgets null',
    create: disrupt({ budgets: null }),
    stored: { 'spec.disruption': defaultDisruption },
  },
]

const structure: readonly CrdCase[] = [
  ...refuses('spec is required', /spec: Required value/, [undefined], (spec) => ({ ...aNodePool(), spec })),
  ...refuses('template is required', /spec\.template: Required value/, [undefined], (template) =>
    aNodePool({ template }),
  ),
  ...refuses('template.spec is required', /spec\.template\.spec: Required value/, [{}], (template) =>
    aNodePool({ template }),
  ),
  ...refuses('requirements are required', /requirements: Required value/, [undefined], (requirements) =>
    poolOf({ requirements }),
  ),
  ...refuses('nodeClassRef is required', /nodeClassRef: Required value/, [undefined], (nodeClassRef) =>
    poolOf({ nodeClassRef }),
  ),
  ...refuses('unknown fields', /unknown field "spec\.template\.spec\.kubelet"/, [{}], (kubelet) =>
    poolOf({ kubelet }),
  ),
]

const durations: readonly CrdCase[] = [
  ...accepts('API-2 expireAfter', ['30s', '1h30m5s', '5s1h', 'Never'], (expireAfter) =>
    poolOf({ expireAfter }),
  ),
  ...refuses(
    'API-2 expireAfter',
    /spec\.template\.spec\.expireAfter.* should match/,
    ['-1s', '1hr', 'FooNever', '1.5h', '10ms', ''],
    (expireAfter) => poolOf({ expireAfter }),
  ),
  ...accepts(
    'API-3 consolidateAfter Never',
    ['WhenEmpty', 'WhenEmptyOrUnderutilized'],
    (consolidationPolicy) => disrupt({ consolidateAfter: 'Never', consolidationPolicy }),
  ),
  ...refuses(
    'consolidateAfter',
    /spec\.disruption\.consolidateAfter.* should match/,
    ['-1s', 'never', '1d'],
    (consolidateAfter) => disrupt({ consolidateAfter }),
  ),
  ...accepts('API-31 terminationGracePeriod', ['30s', '1h30m5s', '0s'], (terminationGracePeriod) =>
    poolOf({ terminationGracePeriod }),
  ),
  ...refuses(
    'API-31 terminationGracePeriod',
    /terminationGracePeriod.* should match/,
    ['Never', '-1s'],
    (terminationGracePeriod) => poolOf({ terminationGracePeriod }),
  ),
]

const consolidationPolicy: readonly CrdCase[] = [
  ...accepts('API-4 consolidationPolicy', ['Balanced', 'WhenEmpty', 'WhenEmptyOrUnderutilized'], (policy) =>
    disrupt({ consolidationPolicy: policy }),
  ),
  ...refuses(
    'API-4 consolidationPolicy',
    /consolidationPolicy: Unsupported value/,
    ['balanced', 'WhenUnderutilized', '', '1', 'foo'],
    (policy) => disrupt({ consolidationPolicy: policy }),
  ),
]

const weekly = '0 9 * * mon-fri'

const budgets: readonly CrdCase[] = [
  ...refuses('API-6 schedule', /schedule.* should match/, ['*', '* * * * ', '@every 1h'], (schedule) =>
    budget({ nodes: '10', schedule, duration: '20m' }),
  ),
  ...accepts('API-6 schedule', ['@annually', '* * * * *', weekly], (schedule) =>
    budget({ nodes: '10', schedule, duration: '20m' }),
  ),
  ...accepts('API-103 schedule that fails later', ['@dailyfoo', '0 0 * * 7'], (schedule) =>
    budget({ nodes: '10', schedule, duration: '20m' }),
  ),
  ...refuses('API-103 schedule', /schedule.* should match/, ['@every 1h'], (schedule) =>
    budget({ nodes: '10', schedule, duration: '20m' }),
  ),
  ...refuses('API-7 duration', /duration.* should match/, ['-20m', '30s', '1h30m5s', '20m2h'], (duration) =>
    budget({ nodes: '10', schedule: weekly, duration }),
  ),
  ...accepts('API-7 duration', ['20m', '2h20m', '2h20m0s', '0m', '720h'], (duration) =>
    budget({ nodes: '10', schedule: weekly, duration }),
  ),
  ...refuses(
    'API-8 nodes',
    /nodes.* should match/,
    ['-10', '-10%', '1000%', '101%', '5.5', '10 %'],
    (nodes) => budget({ nodes }),
  ),
  ...refuses('API-8 nodes', /nodes.*must be of type string: "integer"/, [10], (nodes) => budget({ nodes })),
  ...accepts('API-8 nodes', ['0', '10', '100%', '00%', '99999999999999999999'], (nodes) => budget({ nodes })),
  ...refuses(
    'API-9 schedule and duration',
    /'schedule' must be set with 'duration'/,
    [{ schedule: weekly }, { duration: '20m' }],
    (fields) => disrupt({ budgets: [{ nodes: '1' }, { nodes: '10', ...fields }, { nodes: '5%' }] }),
  ),
  ...accepts('API-10 reasons', [['Drifted', 'Empty'], ['Underutilized']], (reasons) =>
    budget({ nodes: '10', reasons }),
  ),
  ...refuses(
    'API-10 reasons',
    /reasons\[0\]: Unsupported value/,
    [['expired'], [''], ['drifted']],
    (reasons) => budget({ nodes: '10', reasons }),
  ),
  ...refuses('API-10 reasons', /reasons\[1\]: Duplicate value/, [['Empty', 'Empty']], (reasons) =>
    budget({ nodes: '10', reasons }),
  ),
  ...accepts('API-11 budgets', [50], (count) =>
    disrupt({ budgets: numbered('', count).map((nodes) => ({ nodes })) }),
  ),
  ...refuses('API-11 budgets', /budgets: Too many: 51: must have at most 50 items/, [51], (count) =>
    disrupt({ budgets: numbered('', count).map((nodes) => ({ nodes })) }),
  ),
]

const labels: readonly CrdCase[] = [
  ...accepts(
    'API-26 API-27 API-91 label',
    [
      { 'kops.k8s.io/instancegroup': 'a' },
      { 'kubernetes.io/x': 'a' },
      { 'node-restriction.kubernetes.io/x': '' },
      { 'karpenter.sh/capacity-type': 'spot' },
      { 'topology.kubernetes.io/zone': 'ch-gva-2' },
      { 'spaces are not allowed': 'admitted' },
      { plain: 'value' },
    ],
    poolLabelled,
  ),
  ...refuses(
    'API-26 label value',
    /labels.* should match/,
    [{ 'example.com/tier': '/ is not allowed' }, { 'example.com/tier': '-a' }],
    poolLabelled,
  ),
  ...refuses(
    'label value of 64 characters',
    /labels.*: Too long: may not be more than 63 bytes/,
    [{ 'example.com/tier': 'a'.repeat(64) }],
    poolLabelled,
  ),
  ...refuses(
    'API-27 label of a reserved domain',
    /label domain "karpenter.sh" is restricted/,
    [
      { 'karpenter.sh/unknown': 'a' },
      { 'foo.karpenter.sh/x': 'a' },
      { 'mykarpenter.sh/x': 'a' },
      { 'karpenter.sh': 'a' },
    ],
    poolLabelled,
  ),
  ...refuses(
    'API-27 restricted label',
    /label "karpenter.sh\/nodepool" is restricted/,
    [{ 'karpenter.sh/nodepool': 'a' }],
    poolLabelled,
  ),
  ...refuses(
    'restricted label',
    /label "kubernetes.io\/hostname" is restricted/,
    [{ 'kubernetes.io/hostname': 'a' }],
    poolLabelled,
  ),
  ...accepts('API-28 labels', [100], (count) => poolLabelled(labelSet(count))),
  ...refuses('API-28 labels', /labels: Too many: 101: must have at most 100 items/, [101], (count) =>
    poolLabelled(labelSet(count)),
  ),
]

function labelSet(count: number): Record<string, string> {
  return Object.fromEntries(numbered('example.com/label-', count).map((key) => [key, 'a']))
}

const reference: readonly CrdCase[] = [
  ...refuses('API-29 group with a version', /group.* should match/, ['karpenter.test.sh/v1'], (group) =>
    poolRefersTo({ group }),
  ),
  ...(['group', 'kind', 'name'] as const).flatMap((field) => [
    ...refuses(`API-29 ${field}`, new RegExp(`${field} may not be empty`), [''], (value) =>
      poolRefersTo({ [field]: value }),
    ),
    ...refuses(
      `${field} is required`,
      new RegExp(`nodeClassRef\\.${field}: Required value`),
      [undefined],
      (value) => poolRefersTo({ [field]: value }),
    ),
  ]),
  ...(['group', 'kind'] as const).map((field) => ({
    name: `API-30 nodeClassRef.${field} cannot change`,
    create: aNodePool(),
    change: { manifest: poolRefersTo({ [field]: 'other' }) },
    refused: new RegExp(`nodeClassRef\\.${field} is immutable`),
  })),
  {
    name: 'API-30 nodeClassRef.name can change',
    create: aNodePool(),
    change: { manifest: poolRefersTo({ name: 'other' }) },
    stored: { 'spec.template.spec.nodeClassRef.name': 'other' },
  },
]

const modeChange = /cannot change between static \(with replicas\) and dynamic \(without\)/

const limitsWeightReplicas: readonly CrdCase[] = [
  ...accepts('API-32 replicas', [0, 5, 1000], (replicas) => aNodePool({ replicas })),
  ...refuses('API-32 replicas', /replicas.* should be greater than or equal to 0/, [-100], (replicas) =>
    aNodePool({ replicas }),
  ),
  ...refuses(
    'API-33 STA-90 limits of a static pool',
    /only 'limits.nodes' works with 'replicas'/,
    [{ cpu: '10' }, { memory: '1Gi' }, { pods: 5 }, { 'ephemeral-storage': '1Gi' }, { nodes: 5, cpu: 10 }],
    (limits) => aNodePool({ replicas: 3, limits }),
  ),
  ...accepts('API-33 limits of a static pool', [{ nodes: 100 }, { nodes: '100' }, {}], (limits) =>
    aNodePool({ replicas: 3, limits }),
  ),
  ...refuses(
    'API-33 STA-90 weight of a static pool',
    /'weight' does not work with 'replicas'/,
    [10],
    (weight) => aNodePool({ replicas: 3, weight }),
  ),
  {
    name: 'API-34 a static pool changes its size',
    create: aNodePool({ replicas: 3 }),
    change: { manifest: aNodePool({ replicas: 5 }) },
    stored: { 'spec.replicas': 5 },
  },
  {
    name: 'API-34 a static pool stays static',
    create: aNodePool({ replicas: 3 }),
    change: { manifest: aNodePool() },
    refused: modeChange,
  },
  {
    name: 'API-34 STA-90 a dynamic pool stays dynamic',
    create: aNodePool(),
    change: { manifest: aNodePool({ replicas: 3 }) },
    refused: modeChange,
  },
  {
    name: 'API-35 the nodes limit of a static pool is raised',
    create: aNodePool({ replicas: 3, limits: { nodes: 10 } }),
    change: { manifest: aNodePool({ replicas: 3, limits: { nodes: 100 } }) },
    stored: { 'spec.limits.nodes': 100 },
  },
  ...refuses('API-36 weight', /weight.* should be greater than or equal to 1/, [0], (weight) =>
    aNodePool({ weight }),
  ),
  ...refuses('API-36 weight', /weight.* should be less than or equal to 100/, [101], (weight) =>
    aNodePool({ weight }),
  ),
  ...accepts('API-36 weight', [1, 100], (weight) => aNodePool({ weight })),
  ...refuses('API-102 a fraction as a number', /limits\.cpu.* must be of type integer,string/, [1.5], (cpu) =>
    aNodePool({ limits: { cpu } }),
  ),
  ...refuses('a limit that is not a quantity', /limits\.cpu.* should match/, ['ten', '1 Gi', '1KiB'], (cpu) =>
    aNodePool({ limits: { cpu } }),
  ),
  ...accepts('API-102 limits', ['1.5', '1500m', 1000, '4000Gi', '-1', '1e3'], (cpu) =>
    aNodePool({ limits: { cpu, 'any key': 1 } }),
  ),
]

const status = (fields: object) => ({ ...aNodePool(), status: fields })

const condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Ready',
  message: '',
  lastTransitionTime: '2026-11-21T05:00:00Z',
  observedGeneration: 1,
}

const refusedCondition: readonly (readonly [field: string, value: unknown, message: RegExp])[] = [
  ['type', 'a b', /type.* should match/],
  ['status', 'Maybe', /status: Unsupported value/],
  ['reason', 'not one word', /reason.* should match/],
  ['reason', '', /reason.* should be at least 1 chars long/],
  ['reason', undefined, /reason: Required value/],
  ['message', undefined, /message: Required value/],
  ['lastTransitionTime', 'now', /lastTransitionTime.* must be of type date-time/],
  ['observedGeneration', -1, /observedGeneration.* should be greater than or equal to 0/],
]

const statuses: readonly CrdCase[] = [
  {
    name: 'API-95 status is kept, and nodes is 0 unless given',
    create: aNodePool(),
    change: {
      subresource: 'status',
      manifest: status({
        resources: { cpu: '0', memory: '0' },
        nodeClassObservedGeneration: 3,
        conditions: [condition],
      }),
    },
    stored: {
      'status.nodes': 0,
      'status.resources': { cpu: '0', memory: '0' },
      'status.nodeClassObservedGeneration': 3,
      'status.conditions': [condition],
    },
  },
  ...refusedCondition.map(([field, value, refused]) => ({
    name: `condition with ${field} ${JSON.stringify(value) ?? 'absent'} refused`,
    create: aNodePool(),
    change: {
      subresource: 'status' as const,
      manifest: status({ conditions: [{ ...condition, [field]: value }] }),
    },
    refused,
  })),
  {
    name: 'two conditions of one type refused',
    create: aNodePool(),
    change: { subresource: 'status', manifest: status({ conditions: [condition, condition] }) },
    refused: /conditions\[1\]: Duplicate value/,
  },
]

export const nodePoolCases: readonly CrdCase[] = [
  ...defaults,
  ...structure,
  ...durations,
  ...consolidationPolicy,
  ...budgets,
  ...labels,
  ...reference,
  ...limitsWeightReplicas,
  ...statuses,
]
