/** ExoscaleNodeClass (exoscale.md A3), KWOKNodeClass (operations.md 12.1), CleverNodeClass (clever-cloud.md 3), ClusterAPINodeClass (cluster-api.md 2). */
import { accepts, type CrdCase, numbered, refuses } from './crd-case.test-support.ts'
import {
  aCleverNodeClass,
  aClusterAPINodeClass,
  aKwokNodeClass,
  anExoscaleNodeClass,
} from './manifests.test-support.ts'

const uuid = '3f0c8e3e-3b1a-4a52-9d4e-1c5f5f7a9b10'
const kubeletDefaults = {
  clusterDNS: ['10.96.0.10'],
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  imageMinimumGCAge: '2m',
  kubeReserved: { cpu: '200m', memory: '300Mi', ephemeralStorage: '1Gi' },
  systemReserved: { cpu: '100m', memory: '100Mi', ephemeralStorage: '3Gi' },
}
const kubelet = (fields: unknown) => anExoscaleNodeClass({ kubelet: fields })
const terms = ['securityGroup', 'antiAffinityGroup', 'privateNetwork'].map((what) => `${what}SelectorTerms`)
const mostTerms: Readonly<Record<string, number>> = {
  securityGroupSelectorTerms: 50,
  antiAffinityGroupSelectorTerms: 50,
  privateNetworkSelectorTerms: 10,
  securityGroups: 50,
  privateNetworks: 10,
}

const templates: readonly CrdCase[] = [
  ...refuses(
    'EXO-1 template',
    /give exactly one of templateID and imageTemplateSelector/,
    [
      { templateID: undefined, imageTemplateSelector: undefined },
      { templateID: uuid, imageTemplateSelector: {} },
    ],
    anExoscaleNodeClass,
  ),
  {
    name: 'EXO-2 an empty imageTemplateSelector means the standard variant',
    create: anExoscaleNodeClass(),
    stored: { 'spec.imageTemplateSelector': { variant: 'standard' } },
  },
  ...accepts('templateID', [uuid], (templateID) =>
    anExoscaleNodeClass({ templateID, imageTemplateSelector: undefined }),
  ),
  ...refuses(
    'templateID',
    /templateID.* should match/,
    [uuid.toUpperCase(), 'my-template', ''],
    (templateID) => anExoscaleNodeClass({ templateID, imageTemplateSelector: undefined }),
  ),
  ...refuses('EXO-3 version', /version.* should match/, ['1.33', '1', 'v1.33.0', ''], (version) =>
    anExoscaleNodeClass({ imageTemplateSelector: { version } }),
  ),
  ...accepts('EXO-3 version', ['1.33.0'], (version) =>
    anExoscaleNodeClass({ imageTemplateSelector: { version } }),
  ),
  ...refuses('EXO-4 variant', /variant: Unsupported value/, ['arm', '', 'Standard'], (variant) =>
    anExoscaleNodeClass({ imageTemplateSelector: { variant } }),
  ),
  ...accepts('EXO-4 variant', ['nvidia', 'standard'], (variant) =>
    anExoscaleNodeClass({ imageTemplateSelector: { variant } }),
  ),
  {
    name: 'the template of a class can change',
    create: anExoscaleNodeClass(),
    change: { manifest: anExoscaleNodeClass({ templateID: uuid, imageTemplateSelector: undefined }) },
    stored: { 'spec.templateID': uuid, 'spec.imageTemplateSelector': undefined },
  },
  ...refuses('ExoscaleNodeClass spec', /spec: Required value/, [undefined], (spec) => ({
    ...anExoscaleNodeClass(),
    spec,
  })),
]

const disk: readonly CrdCase[] = [
  ...refuses('EXO-5 diskSize', /diskSize.* should be greater than or equal to 10/, [9, -1], (diskSize) =>
    anExoscaleNodeClass({ diskSize }),
  ),
  ...refuses('EXO-5 diskSize', /diskSize.* should be less than or equal to 8000/, [8001], (diskSize) =>
    anExoscaleNodeClass({ diskSize }),
  ),
  ...refuses('EXO-5 diskSize', /diskSize.* must be of type integer/, ['50', 50.5], (diskSize) =>
    anExoscaleNodeClass({ diskSize }),
  ),
  ...accepts('EXO-5 diskSize', [10, 8000], (diskSize) => anExoscaleNodeClass({ diskSize })),
  { name: 'EXO-5 diskSize absent', create: anExoscaleNodeClass(), stored: { 'spec.diskSize': 50 } },
]

const thresholds = (low: number | undefined, high: number | undefined) =>
  kubelet({ imageGCLowThresholdPercent: low, imageGCHighThresholdPercent: high })
const thresholdRule = /imageGCLowThresholdPercent must be below kubelet\.imageGCHighThresholdPercent/

const kubeletSettings: readonly CrdCase[] = [
  ...refuses('EXO-6 thresholds', thresholdRule, [70, 80], (high) => thresholds(80, high)),
  ...accepts('EXO-6 thresholds', [85, 81], (high) => thresholds(80, high)),
  ...refuses('EXO-123 low threshold alone', thresholdRule, [90, 85], (low) => thresholds(low, undefined)),
  ...accepts('EXO-123 low threshold alone', [84, 0], (low) => thresholds(low, undefined)),
  ...refuses('high threshold', /imageGCHigh.* should be less than or equal to 100/, [101], (high) =>
    thresholds(80, high),
  ),
  ...refuses('low threshold', /imageGCLow.* should be greater than or equal to 0/, [-1], (low) =>
    thresholds(low, 80),
  ),
  ...refuses(
    'EXO-7 imageMinimumGCAge',
    /imageMinimumGCAge.* should match/,
    ['5 minutes', '1h5m', ''],
    (age) => kubelet({ imageMinimumGCAge: age }),
  ),
  ...accepts('EXO-7 imageMinimumGCAge', ['5m', '30s', '1h'], (age) => kubelet({ imageMinimumGCAge: age })),
  ...[undefined, null, {}, { kubeReserved: {}, systemReserved: null }].map((given) => ({
    name: `EXO-7 EXO-10 kubelet ${JSON.stringify(given) ?? 'absent'} gets its defaults`,
    create: kubelet(given),
    stored: { 'spec.kubelet': kubeletDefaults },
  })),
  {
    name: 'EXO-10 what a reservation leaves out gets its default',
    create: kubelet({ kubeReserved: { cpu: '500m' } }),
    stored: { 'spec.kubelet.kubeReserved': { cpu: '500m', memory: '300Mi', ephemeralStorage: '1Gi' } },
  },
  ...accepts('EXO-11 reserved cpu', ['100m', '1', '1.5', '1m5'], (cpu) =>
    kubelet({ systemReserved: { cpu } }),
  ),
  ...refuses('reserved cpu', /systemReserved\.cpu.* should match/, ['m', '-1', '1Gi', ''], (cpu) =>
    kubelet({ systemReserved: { cpu } }),
  ),
  ...accepts('reserved memory', ['256Mi', '1G', '1000000'], (memory) =>
    kubelet({ kubeReserved: { memory } }),
  ),
  ...refuses('reserved memory', /kubeReserved\.memory.* should match/, ['1.5Gi', '100m', '1KiB'], (memory) =>
    kubelet({ kubeReserved: { memory } }),
  ),
  ...accepts('clusterDNS', [['10.96.0.10', 'fd00::10'], []], (clusterDNS) => kubelet({ clusterDNS })),
  ...accepts('featureGates', [{ KubeletInUserNamespace: true }], (featureGates) => kubelet({ featureGates })),
  ...refuses('featureGates', /featureGates\.A.* must be of type boolean/, [{ A: 'true' }], (featureGates) =>
    kubelet({ featureGates }),
  ),
  ...refuses('unknown kubelet field', /unknown field "spec\.kubelet\.maxPods"/, [110], (maxPods) =>
    kubelet({ maxPods }),
  ),
]

const groups: readonly CrdCase[] = [
  ...terms.flatMap((field) => [
    ...refuses(`EXO-8 ${field}`, /give exactly one of id and name/, [{ id: uuid, name: 'a' }, {}], (term) =>
      anExoscaleNodeClass({ [field]: [term] }),
    ),
    ...refuses(
      `EXO-124 ${field}`,
      /(id|name).* should be at least 1 chars long/,
      [{ id: '' }, { name: '' }],
      (term) => anExoscaleNodeClass({ [field]: [term] }),
    ),
    ...accepts(`EXO-8 ${field}`, [{ id: uuid }, { name: 'My group' }], (term) =>
      anExoscaleNodeClass({ [field]: [term, term] }),
    ),
  ]),
  ...Object.entries(mostTerms).flatMap(([field, most]) => {
    const items = (count: number) =>
      numbered('', count).map((name) => (terms.includes(field) ? { name } : name))
    return [
      ...refuses(
        `EXO-9 ${field}`,
        new RegExp(`${field}: Too many: ${most + 1}: must have`),
        [most + 1],
        (count) => anExoscaleNodeClass({ [field]: items(count) }),
      ),
      ...accepts(`EXO-9 ${field}`, [most, 0], (count) => anExoscaleNodeClass({ [field]: items(count) })),
    ]
  }),
  ...accepts('EXO-9 antiAffinityGroups', [51], (count) =>
    anExoscaleNodeClass({ antiAffinityGroups: numbered('', count) }),
  ),
  {
    name: 'EXO-12 former and present fields for security groups stand side by side',
    create: anExoscaleNodeClass({ securityGroups: ['a'], securityGroupSelectorTerms: [{ id: 'b' }] }),
    stored: { 'spec.securityGroups': ['a'], 'spec.securityGroupSelectorTerms': [{ id: 'b' }] },
  },
]

const formerFields: readonly CrdCase[] = [
  {
    name: 'EXO-13 removed fields are accepted',
    create: anExoscaleNodeClass({
      imageGCHighThresholdPercent: 80,
      imageGCLowThresholdPercent: 70,
      imageMinimumGCAge: '5m',
      kubeReserved: { cpu: '100m', memory: '256Mi', ephemeralStorage: '1Gi' },
      systemReserved: { cpu: '100m', memory: '256Mi', ephemeralStorage: '1Gi' },
      nodeLabels: { environment: 'production' },
      nodeTaints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }],
    }),
    stored: { 'spec.kubelet': kubeletDefaults },
  },
  {
    name: 'EXO-13 removed fields hold whatever they held',
    create: anExoscaleNodeClass({ nodeLabels: { a: 1 }, nodeTaints: [{}], kubeReserved: { pid: 1000 } }),
  },
]

const condition = (type: string) => ({
  type,
  status: 'True',
  reason: type,
  message: '',
  lastTransitionTime: '2026-11-21T05:00:00Z',
})

const statuses: readonly CrdCase[] = [
  {
    name: 'the whole status of an ExoscaleNodeClass is kept',
    create: anExoscaleNodeClass(),
    change: {
      subresource: 'status',
      manifest: {
        ...anExoscaleNodeClass(),
        status: {
          conditions: [condition('TemplateResolved'), condition('Ready')],
          securityGroups: [uuid],
          antiAffinityGroups: [],
          privateNetworks: [uuid],
        },
      },
    },
    stored: {
      'status.conditions': [condition('TemplateResolved'), condition('Ready')],
      'status.securityGroups': [uuid],
      'status.antiAffinityGroups': [],
      'status.privateNetworks': [uuid],
    },
  },
]

const ready = {
  type: 'Ready',
  status: 'True',
  reason: 'Ready',
  message: '',
  lastTransitionTime: '2024-01-01T01:01:01Z',
}

const kwok: readonly CrdCase[] = [
  {
    name: 'OPS-62 a bare KWOKNodeClass is ready at once',
    create: aKwokNodeClass(),
    stored: { 'status.conditions': [ready] },
  },
  {
    name: 'OPS-62 a KWOKNodeClass with an empty spec is ready at once',
    create: aKwokNodeClass({ spec: {} }),
    stored: { 'status.conditions': [ready] },
  },
  ...accepts('nodeRegistrationDelay', ['0s', '1m30s'], (nodeRegistrationDelay) =>
    aKwokNodeClass({ spec: { nodeRegistrationDelay } }),
  ),
  ...refuses('nodeRegistrationDelay', /nodeRegistrationDelay.* should match/, ['Never', '5'], (delay) =>
    aKwokNodeClass({ spec: { nodeRegistrationDelay: delay } }),
  ),
]

const labelled = (labels: unknown) => aCleverNodeClass({ spec: { labels } })

const cleverCloud: readonly CrdCase[] = [
  ...accepts('CleverNodeClass', [undefined, {}, { labels: {} }], (spec) => aCleverNodeClass({ spec })),
  {
    name: 'CLV-46 labels that are absent, and labels that are empty, stay as they are',
    create: labelled({}),
    stored: { 'spec.labels': {}, status: undefined },
  },
  ...refuses(
    'CLV-67 reserved label',
    /spec\.labels.* keys must not start with kubernetes\.io\/, node\.kubernetes\.io\/, clever-cloud\.com\//,
    [
      { 'kubernetes.io/os': 'linux' },
      { 'node.kubernetes.io/instance-type': 'M' },
      { team: 'data', 'clever-cloud.com/flavor': 'M' },
    ],
    labelled,
  ),
  ...accepts(
    'CLV-67 what the controller judges',
    [
      { team: 'x'.repeat(64) },
      { 'not a key': '' },
      { 'topology.kubernetes.io/zone': 'par' },
      { 'karpenter.clever-cloud.com/team': 'data' },
      Object.fromEntries(numbered('label-', 500).map((key) => [key, 'x'])),
    ],
    labelled,
  ),
  ...refuses('labels', /spec\.labels\.team.* must be of type string/, [{ team: 1 }], labelled),
  ...refuses('CleverNodeClass', /unknown field "spec\.taints"/, [{ taints: [] }], (spec) =>
    aCleverNodeClass({ spec }),
  ),
  {
    name: 'CLV-66 the conditions of a CleverNodeClass are kept',
    create: aCleverNodeClass(),
    change: {
      subresource: 'status',
      manifest: aCleverNodeClass({
        status: { conditions: [condition('ValidationSucceeded'), condition('Ready')] },
      }),
    },
    stored: { 'status.conditions': [condition('ValidationSucceeded'), condition('Ready')] },
  },
  {
    name: 'a condition of a CleverNodeClass needs a reason',
    create: aCleverNodeClass(),
    change: {
      subresource: 'status',
      manifest: aCleverNodeClass({ status: { conditions: [{ ...condition('Ready'), reason: '' }] } }),
    },
    refused: /status\.conditions\[0\]\.reason/,
  },
]

const selecting = (scalableResourceSelector: unknown) =>
  aClusterAPINodeClass({ spec: { scalableResourceSelector } })
const selected = { namespace: 'default', name: 'md-0', instanceType: 'm', zone: 'a', price: '0.1 EUR' }

const clusterApi: readonly CrdCase[] = [
  ...accepts(
    'ClusterAPINodeClass',
    [undefined, {}, { driftPolicy: 'Replace' }, { driftPolicy: 'Ignore' }],
    (spec) => aClusterAPINodeClass({ spec }),
  ),
  ...accepts(
    'selector',
    [
      {},
      { matchLabels: { team: 'a' } },
      { matchExpressions: [{ key: 'team', operator: 'Exists' }] },
      { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['a', 'b'] }] },
    ],
    selecting,
  ),
  ...refuses(
    'CAP-96 operator that is not known',
    /matchExpressions\[0\]\.operator.* supported values: "In", "NotIn", "Exists", "DoesNotExist"/,
    [{ matchExpressions: [{ key: 'team', operator: 'Near' }] }],
    selecting,
  ),
  ...refuses('selector', /unknown field/, [{ matchFields: [] }], selecting),
  ...refuses(
    'ClusterAPINodeClass',
    /spec\.driftPolicy.* supported values/,
    [{ driftPolicy: 'Never' }],
    (spec) => aClusterAPINodeClass({ spec }),
  ),
  {
    name: 'CAP-65 conditions and matches of a ClusterAPINodeClass are kept',
    create: aClusterAPINodeClass(),
    change: {
      subresource: 'status',
      manifest: aClusterAPINodeClass({
        status: { conditions: [condition('Ready')], machineDeployments: [selected] },
      }),
    },
    stored: { 'status.conditions': [condition('Ready')], 'status.machineDeployments': [selected] },
  },
]

export const nodeClassCases: readonly CrdCase[] = [
  ...templates,
  ...disk,
  ...kubeletSettings,
  ...groups,
  ...formerFields,
  ...statuses,
  ...kwok,
  ...cleverCloud,
  ...clusterApi,
]
