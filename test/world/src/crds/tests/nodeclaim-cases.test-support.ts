/** NodeClaim: what it does not share with the template of a NodePool (api.md 4). */
import { accepts, type CrdCase, refuses } from './crd-case.test-support.ts'
import { aNodeClaim } from './manifests.test-support.ts'

const lastTransitionTime = '2026-11-21T05:00:00Z'
const former = { type: 'Launched', status: 'True', lastTransitionTime }
const status = (fields: object) => ({
  subresource: 'status' as const,
  manifest: { ...aNodeClaim(), status: fields },
})

const specChanges: readonly (readonly [what: string, fields: object])[] = [
  ['expireAfter', { expireAfter: '24h' }],
  ['a requirement', { requirements: [{ key: 'example.com/tier', operator: 'Exists' }] }],
  ['a taint', { taints: [{ key: 'example.com/a', effect: 'NoSchedule' }] }],
  [
    'nodeClassRef.name',
    { nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'b' } },
  ],
  ['the requests', { resources: { requests: { cpu: '2' } } }],
]

const refusedCondition: readonly (readonly [field: string, value: unknown, message: RegExp])[] = [
  ['type', undefined, /type: Required value/],
  ['status', undefined, /status: Required value/],
  ['lastTransitionTime', undefined, /lastTransitionTime: Required value/],
  ['reason', 'two words', /reason.* should match/],
]

export const nodeClaimCases: readonly CrdCase[] = [
  {
    name: 'the smallest NodeClaim gets its defaults',
    create: aNodeClaim(),
    stored: {
      'spec.expireAfter': '720h',
      'spec.terminationGracePeriod': undefined,
      'spec.requirements': [],
      status: undefined,
    },
  },
  {
    name: 'API-97 durations of a NodeClaim are kept as written',
    create: aNodeClaim({ terminationGracePeriod: '1m30s', expireAfter: '1440m' }),
    stored: { 'spec.terminationGracePeriod': '1m30s', 'spec.expireAfter': '1440m' },
  },
  ...refuses('NodeClaim expireAfter', /spec\.expireAfter.* should match/, ['1hr'], (expireAfter) =>
    aNodeClaim({ expireAfter }),
  ),
  ...refuses('NodeClaim terminationGracePeriod', /spec\.termination.* should match/, ['Never'], (value) =>
    aNodeClaim({ terminationGracePeriod: value }),
  ),
  ...refuses('NodeClaim nodeClassRef group', /group.* should match/, ['a/v1'], (group) =>
    aNodeClaim({ nodeClassRef: { group, kind: 'A', name: 'a' } }),
  ),
  ...refuses('NodeClaim nodeClassRef name', /name may not be empty/, [''], (name) =>
    aNodeClaim({ nodeClassRef: { group: 'a.com', kind: 'A', name } }),
  ),
  ...(['nodeClassRef', 'requirements'] as const).flatMap((field) =>
    refuses(`NodeClaim ${field}`, new RegExp(`spec\\.${field}: Required value`), [undefined], (value) =>
      aNodeClaim({ [field]: value }),
    ),
  ),
  ...accepts('NodeClaim requests', [{ cpu: '1500m', memory: '3Gi', 'nvidia.com/gpu': 1 }], (requests) =>
    aNodeClaim({ resources: { requests } }),
  ),
  ...refuses('NodeClaim requests', /requests\.cpu.* should match/, [{ cpu: 'many' }], (requests) =>
    aNodeClaim({ resources: { requests } }),
  ),
  ...specChanges.map(([what, fields]) => ({
    name: `API-40 ${what} of a NodeClaim cannot change`,
    create: aNodeClaim(),
    change: { manifest: aNodeClaim({ ...fields }) },
    refused: /spec: .*spec is immutable/,
  })),
  {
    name: 'API-40 labels of a NodeClaim can change',
    create: aNodeClaim(),
    change: { manifest: aNodeClaim({}, { labels: { a: 'b' } }) },
    stored: { 'metadata.labels': { a: 'b' } },
  },
  {
    name: 'API-41 a condition without reason and message',
    create: aNodeClaim(),
    change: status({ conditions: [former, { ...former, type: 'Registered', reason: '' }] }),
    stored: { 'status.conditions': [former, { ...former, type: 'Registered', reason: '' }] },
  },
  ...refusedCondition.map(([field, value, refused]) => ({
    name: `NodeClaim condition with ${field} ${JSON.stringify(value) ?? 'absent'} refused`,
    create: aNodeClaim(),
    change: status({ conditions: [{ ...former, [field]: value }] }),
    refused,
  })),
  {
    name: 'the whole status of a NodeClaim is kept',
    create: aNodeClaim(),
    change: status({
      providerID: 'exoscale://3f0c8e3e-3b1a-4a52-9d4e-1c5f5f7a9b10',
      nodeName: 'a',
      imageID: 'b',
      capacity: { cpu: '4', memory: '8Gi', pods: 110 },
      allocatable: { cpu: '3700m' },
      lastPodEventTime: lastTransitionTime,
    }),
    stored: {
      'status.providerID': 'exoscale://3f0c8e3e-3b1a-4a52-9d4e-1c5f5f7a9b10',
      'status.nodeName': 'a',
      'status.imageID': 'b',
      'status.capacity': { cpu: '4', memory: '8Gi', pods: 110 },
      'status.allocatable': { cpu: '3700m' },
      'status.lastPodEventTime': lastTransitionTime,
    },
  },
  {
    name: 'lastPodEventTime that is no time refused',
    create: aNodeClaim(),
    change: status({ lastPodEventTime: 'yesterday' }),
    refused: /lastPodEventTime.* must be of type date-time/,
  },
]
