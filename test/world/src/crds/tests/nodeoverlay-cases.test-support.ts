/** NodeOverlay (api.md 5): its own fields; keys and operators are checked as for the other kinds. */
import { accepts, type CrdCase, refuses } from './crd-case.test-support.ts'
import { aNodeOverlay, requirement } from './manifests.test-support.ts'
import { keyCases, operatorCases } from './template-cases.test-support.ts'

const kind = 'NodeOverlay'
const price = (value: unknown) => aNodeOverlay({ price: value })
const adjustment = (value: unknown) => aNodeOverlay({ priceAdjustment: value })
const capacity = (value: unknown) => aNodeOverlay({ capacity: value })
const weight = (value: unknown) => aNodeOverlay({ weight: value })
const valued = (operator: string) => (values: readonly string[] | undefined) =>
  aNodeOverlay({ requirements: [requirement(operator, values)] })

const condition = {
  type: 'ValidationSucceeded',
  status: 'False',
  reason: 'Conflict',
  message: '',
  lastTransitionTime: '2026-11-21T05:00:00Z',
  observedGeneration: 1,
}
const status = (fields: object) => ({
  subresource: 'status' as const,
  manifest: { ...aNodeOverlay(), status: { conditions: [fields] } },
})

const prices: readonly CrdCase[] = [
  ...refuses(
    'API-43 STA-103 NodeOverlay price',
    /spec\.price.* should match/,
    ['+42', '-42', '.5', '42.', '42%', '3,14', '1e10', '0x42', ' 42', '42 ', '42.0.0', '-', 'abc', ''],
    price,
  ),
  ...refuses('NodeOverlay price', /spec\.price.* must be of type string/, [42], price),
  ...accepts('API-43 STA-103 NodeOverlay price', ['43', '34.43', '0', '80.0'], price),
  ...refuses(
    'API-44 STA-103 NodeOverlay priceAdjustment',
    /spec\.priceAdjustment.* should match/,
    ['1', '1%', '1.3', '-100.0%', '-101%', '-101.1%', '-129%', '-.5%', '+1e3', '42.', '+42.', '+', '%', ''],
    adjustment,
  ),
  ...accepts(
    'API-44 STA-103 NodeOverlay priceAdjustment',
    ['+1%', '-1%', '-100%', '+100.102%', '+298%', '+43', '-43', '+34.43', '-34.43'],
    adjustment,
  ),
  ...accepts('API trap 25 NodeOverlay priceAdjustment', ['-129', '+.5', '-.5', '+.5%', '-99.9%'], adjustment),
  {
    name: 'API-42 STA-104 NodeOverlay price and priceAdjustment refused',
    create: aNodeOverlay({ price: '1', priceAdjustment: '+1' }),
    refused: /spec: .*'price' and 'priceAdjustment' exclude each other/,
  },
]

const capacities: readonly CrdCase[] = [
  ...refuses(
    'API-45 NodeOverlay capacity',
    /spec\.capacity: .*cpu, memory, ephemeral-storage and pods cannot be overlaid/,
    [
      { cpu: '1' },
      { memory: '1Gi' },
      { pods: 10 },
      { 'ephemeral-storage': '1Gi' },
      { cpu: '1', 'smarter-devices/fuse': 1 },
    ],
    capacity,
  ),
  ...accepts(
    'API-45 NodeOverlay capacity',
    [{ 'smarter-devices/fuse': 1 }, { 'hugepages-2Mi': '2Gi' }, {}],
    capacity,
  ),
  ...refuses(
    'NodeOverlay capacity',
    /capacity\.example\.com\/gpu.* should match/,
    [{ 'example.com/gpu': 'many' }],
    capacity,
  ),
]

export const nodeOverlayCases: readonly CrdCase[] = [
  {
    name: 'the smallest NodeOverlay gets no defaults',
    create: aNodeOverlay(),
    stored: { spec: { requirements: [] }, status: undefined },
  },
  ...refuses('NodeOverlay requirements', /spec\.requirements: Required value/, [undefined], (requirements) =>
    aNodeOverlay({ requirements }),
  ),
  ...refuses('NodeOverlay', /spec: Required value/, [undefined], (spec) => ({ ...aNodeOverlay(), spec })),
  ...prices,
  ...capacities,
  ...refuses('NodeOverlay weight', /weight.* should be /, [0, -1, 10_001], weight),
  ...accepts('NodeOverlay weight', [1, 10_000], weight),
  ...keyCases(kind, (fields) => aNodeOverlay(fields)),
  ...operatorCases(kind, (fields) => aNodeOverlay(fields)),
  ...refuses(
    'API-46 NodeOverlay In',
    /requirements: .*operator "In" needs at least one value/,
    [[], undefined],
    valued('In'),
  ),
  ...refuses(
    'API-46 NodeOverlay NotIn',
    /requirements: .*operator "NotIn" needs at least one value/,
    [[], undefined],
    valued('NotIn'),
  ),
  ...accepts('NodeOverlay NotIn', [['a']], valued('NotIn')),
  ...refuses('NodeOverlay minValues', /minValues/, [1], (minValues) =>
    aNodeOverlay({ requirements: [requirement('Exists', undefined, { minValues })] }),
  ),
  {
    name: 'API-47 a NodeOverlay may require karpenter.sh/nodepool',
    create: aNodeOverlay({ requirements: [requirement('In', ['x'], { key: 'karpenter.sh/nodepool' })] }),
  },
  {
    name: 'the spec of a NodeOverlay can change',
    create: aNodeOverlay({ price: '1' }),
    change: { manifest: aNodeOverlay({ priceAdjustment: '-10%', weight: 5 }) },
    stored: { 'spec.price': undefined, 'spec.priceAdjustment': '-10%', 'metadata.generation': 2 },
  },
  {
    name: 'the status of a NodeOverlay is kept',
    create: aNodeOverlay(),
    change: status(condition),
    stored: { 'status.conditions': [condition] },
  },
  {
    name: 'a condition of a NodeOverlay without reason refused',
    create: aNodeOverlay(),
    change: status({ ...condition, reason: undefined }),
    refused: /reason: Required value/,
  },
]
