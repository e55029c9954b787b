import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashString, nodePoolHash } from './hash.ts'
import type { NodeClaimTemplateSpec, NodePool } from './types.ts'

type Metadata = NodePool['spec']['template']['metadata']

function hashOf(spec: Partial<NodeClaimTemplateSpec> = {}, metadata?: Metadata): string {
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
  return nodePoolHash({
    spec: {
      template: {
        ...(metadata && { metadata }),
        spec: { nodeClassRef, requirements: [], expireAfter: '720h', ...spec },
      },
    },
  })
}

const noSchedule = [{ key: 'example.com/t', effect: 'NoSchedule' }] as const
const two = [
  { key: 'a', value: '1', effect: 'NoSchedule' },
  { key: 'b', value: '2', effect: 'NoExecute' },
] as const
const noExecute = [{ key: 'key', effect: 'NoExecute' }] as const

const vectors: readonly (readonly [string, string, string])[] = [
  ['base', hashOf(), '12745407319442031341'],
  ['the same duration spelled otherwise', hashOf({ expireAfter: '43200m' }), '12745407319442031341'],
  ['expireAfter Never', hashOf({ expireAfter: 'Never' }), '7428780003907761376'],
  ['expireAfter 0s', hashOf({ expireAfter: '0s' }), '13546070544088512816'],
  ['a label', hashOf({}, { labels: { 'testing/cluster': 'unspecified' } }), '1699557759471965344'],
  ['label a=b', hashOf({}, { labels: { a: 'b' } }), '8546743665302634964'],
  ['an empty label value', hashOf({}, { labels: { a: '' } }), '3496410445805860152'],
  ['empty labels', hashOf({}, { labels: {} }), '5327702334917744615'],
  ['annotation a=b', hashOf({}, { annotations: { a: 'b' } }), '9505444035315263291'],
  ['a taint', hashOf({ taints: noSchedule }), '14255891075188468378'],
  ['a startup taint', hashOf({ startupTaints: noSchedule }), '8855852701836423785'],
  ['two taints', hashOf({ taints: two }), '6666087806993876022'],
  ['two taints in the other order', hashOf({ taints: two.toReversed() }), '6666087806993876022'],
  ['empty taints', hashOf({ taints: [] }), '845502862369909111'],
  ['grace period 30s', hashOf({ terminationGracePeriod: '30s' }), '1541386002117396403'],
  ['grace period 0s', hashOf({ terminationGracePeriod: '0s' }), '16848824146983765585'],
  [
    'a taint with a time',
    hashOf({ taints: [{ key: 'a', effect: 'NoSchedule', timeAdded: '2026-01-02T03:04:05Z' }] }),
    '11214752619878847857',
  ],
  [
    'everything at once',
    hashOf(
      { taints: noExecute, startupTaints: noExecute, expireAfter: '5m', terminationGracePeriod: '5m' },
      {
        labels: { keyLabel: 'valueLabel', k2: 'v2' },
        annotations: { keyAnnotation: 'valueAnnotation', keyAnnotation2: 'valueAnnotation2' },
      },
    ),
    '15753322179994677786',
  ],
]

for (const [name, actual, expected] of vectors) {
  test(`API-64 the drift hash of ${name} equals version v3`, () => {
    assert.equal(actual, expected)
  })
}

test('API-64 strings hash as in version v3', () => {
  assert.equal(hashString('abc').toString(), '15626587013303479755')
  assert.equal(hashString('').toString(), '14695981039346656037')
})

test('API-65 requirements, weight, limits, disruption, replicas and the name leave the hash alone', () => {
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
  const template = { spec: { nodeClassRef, requirements: [], expireAfter: '720h' } }
  const requirements = [{ key: 'a', operator: 'In' as const, values: ['b'], minValues: 1 }]
  const changed: readonly NodePool['spec'][] = [
    { template: { spec: { ...template.spec, requirements } } },
    { template, weight: 10 },
    { template, limits: { cpu: '10' } },
    { template, disruption: { consolidateAfter: '1m', budgets: [] } },
    { template, replicas: 3 },
  ]
  for (const spec of changed) assert.equal(nodePoolHash({ spec }), nodePoolHash({ spec: { template } }))
})

test('API-66 labels, annotations, taints, node class, lifetime and grace period change the hash', () => {
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'other' }
  const hashes = [
    hashOf(),
    hashOf({}, { labels: { a: 'b' } }),
    hashOf({}, { annotations: { a: 'b' } }),
    hashOf({ taints: noSchedule }),
    hashOf({ startupTaints: noSchedule }),
    hashOf({ nodeClassRef }),
    hashOf({ expireAfter: '721h' }),
    hashOf({ terminationGracePeriod: '1h' }),
  ]
  assert.equal(new Set(hashes).size, hashes.length)
})

test('API-67 another spelling of the same lifetime or grace period is the same', () => {
  assert.equal(hashOf({ expireAfter: '43200m' }), hashOf({ expireAfter: '720h' }))
  assert.equal(hashOf({ terminationGracePeriod: '90s' }), hashOf({ terminationGracePeriod: '1m30s' }))
})

test('API-68 the order of taints and of map entries does not matter', () => {
  assert.equal(hashOf({ taints: two }), hashOf({ taints: two.toReversed() }))
  assert.equal(hashOf({ startupTaints: two }), hashOf({ startupTaints: two.toReversed() }))
  for (const field of ['labels', 'annotations'] as const) {
    assert.equal(hashOf({}, { [field]: { a: '1', b: '2' } }), hashOf({}, { [field]: { b: '2', a: '1' } }))
  }
})
