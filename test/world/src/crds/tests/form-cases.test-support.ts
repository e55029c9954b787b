/**
 * Forms of values at the edges of what is documented (api.md 1.2, 3 to 5, 10): nulls, empty collections,
 * numbers and texts in each other's place, spellings of numbers, times and quantities.
 */
import { accepts, type CrdCase, type Manifest, refuses } from './crd-case.test-support.ts'
import { aNodeClaim, aNodeOverlay, aNodePool, poolOf, requirement } from './manifests.test-support.ts'

const disrupt = (disruption: unknown) => aNodePool({ disruption })
const limits = (cpu: unknown) => aNodePool({ limits: { cpu } })
const taint = (fields: object) => poolOf({ taints: [{ key: 'a', effect: 'NoSchedule', ...fields }] })
const stored = (name: string, create: Manifest, values: Readonly<Record<string, unknown>>): CrdCase => ({
  name,
  create,
  stored: values,
})

const nulls: readonly CrdCase[] = [
  stored('expireAfter null', poolOf({ expireAfter: null }), { 'spec.template.spec.expireAfter': '720h' }),
  stored('consolidateAfter null', disrupt({ consolidateAfter: null, consolidationPolicy: null }), {
    'spec.disruption.consolidateAfter': '0s',
    'spec.disruption.consolidationPolicy': 'WhenEmptyOrUnderutilized',
  }),
  stored('nodes of a budget null', disrupt({ budgets: [{ nodes: null }] }), {
    'spec.disruption.budgets': [{ nodes: '10%' }],
  }),
  stored('weight, replicas and limits null', aNodePool({ weight: null, replicas: null, limits: null }), {
    'spec.weight': undefined,
    'spec.replicas': undefined,
    'spec.limits': undefined,
  }),
  stored('taints null', poolOf({ taints: null, terminationGracePeriod: null }), {
    'spec.template.spec.taints': undefined,
    'spec.template.spec.terminationGracePeriod': undefined,
  }),
  ...refuses('requirements null', /requirements: Required value/, [null], (requirements) =>
    poolOf({ requirements }),
  ),
  ...refuses('template null', /spec\.template: Required value/, [null], (template) =>
    aNodePool({ template }),
  ),
  stored('NodeClaim expireAfter null', aNodeClaim({ expireAfter: null }), { 'spec.expireAfter': '720h' }),
  stored('NodeOverlay price null', aNodeOverlay({ price: null, priceAdjustment: '+1' }), {
    'spec.price': undefined,
  }),
]

const empties: readonly CrdCase[] = [
  stored('empty lists and maps of a template stay', poolOf({ taints: [], startupTaints: [] }), {
    'spec.template.spec.taints': [],
    'spec.template.spec.startupTaints': [],
  }),
  stored(
    'empty labels and annotations stay',
    aNodePool({ template: { ...templateOf(poolOf({})), metadata: { labels: {}, annotations: {} } } }),
    { 'spec.template.metadata': { labels: {}, annotations: {} } },
  ),
  stored('empty limits stay', aNodePool({ limits: {} }), { 'spec.limits': {} }),
  stored('empty resources of a claim stay', aNodeClaim({ resources: { requests: {} } }), {
    'spec.resources': { requests: {} },
  }),
  stored(
    'annotations hold anything',
    aNodePool({
      template: { ...templateOf(poolOf({})), metadata: { annotations: { 'a b': '', c: '{"x": 1}' } } },
    }),
    {
      'spec.template.metadata.annotations': { 'a b': '', c: '{"x": 1}' },
    },
  ),
]

function templateOf(pool: Manifest): object {
  return (pool as Manifest & { readonly spec: { readonly template: object } }).spec.template
}

const types: readonly CrdCase[] = [
  ...refuses('weight of another type', /weight.* must be of type int/, ['5', 1.5, true], (weight) =>
    aNodePool({ weight }),
  ),
  ...refuses('replicas of another type', /replicas.* must be of type integer/, ['5', 1.5], (replicas) =>
    aNodePool({ replicas }),
  ),
  ...refuses('minValues of another type', /minValues.* must be of type integer/, ['1', 1.5], (minValues) =>
    poolOf({ requirements: [requirement('Exists', undefined, { minValues })] }),
  ),
  ...refuses('requirements as a map', /requirements.* must be of type array/, [{}], (requirements) =>
    poolOf({ requirements }),
  ),
  ...refuses('expireAfter as a number', /expireAfter.* must be of type string/, [720], (expireAfter) =>
    poolOf({ expireAfter }),
  ),
  ...refuses('a label value that is no text', /labels.* must be of type string/, [true, 1], (value) =>
    aNodePool({ template: { ...templateOf(poolOf({})), metadata: { labels: { a: value } } } }),
  ),
  ...refuses('NodeOverlay weight of another type', /weight.* must be of type integer/, ['1'], (weight) =>
    aNodeOverlay({ weight }),
  ),
]

const quantities: readonly CrdCase[] = [
  ...accepts(
    'quantity',
    [
      '0',
      '+1',
      '-1',
      '.5',
      '5.',
      '1m',
      '1n',
      '1u',
      '1k',
      '1E',
      '1e3',
      '1E3',
      '1e-3',
      '1.5e+2',
      '12Ki',
      9_007_199_254_740_991,
    ],
    limits,
  ),
  ...refuses(
    'quantity',
    /limits\.cpu.* should match/,
    ['', ' 1', '1 ', '1K', '1ki', '0x1', '1,5', '.', '1e', 'Inf'],
    limits,
  ),
  ...refuses('quantity of another type', /limits\.cpu.* must be of type integer,string/, [true, [1]], limits),
]

/** What Go reads as an integer of 64 bits. */
const bounds: readonly CrdCase[] = [
  ...accepts('bound', ['+1', '007', '-0', '0'], (value) =>
    poolOf({ requirements: [requirement('Gt', [value])] }),
  ),
  ...refuses(
    'bound',
    /single non-negative integer/,
    ['0x10', '1_000', ' 1', '1 ', '1e3', '٣', '--1', '+'],
    (value) => poolOf({ requirements: [requirement('Gt', [value])] }),
  ),
]

const times: readonly CrdCase[] = [
  ...accepts('time', ['2026-11-21T05:00:00.123Z', '2026-11-21T05:00:00+02:00'], (timeAdded) =>
    taint({ timeAdded }),
  ),
  ...refuses(
    'time',
    /timeAdded.* must be of type date-time/,
    ['2026-11-21', '2026-13-21T05:00:00Z', ''],
    (timeAdded) => taint({ timeAdded }),
  ),
]

const texts: readonly CrdCase[] = [
  ...refuses(
    'duration',
    /expireAfter.* should match/,
    ['1H', '1h ', '1h\n', '1h30', '1d', '0', 'Never ', '١h'],
    (expireAfter) => poolOf({ expireAfter }),
  ),
  ...accepts('duration', ['0s', '9999999999h', '43200m', '1s1s'], (expireAfter) => poolOf({ expireAfter })),
  ...refuses('nodes', /nodes.* should match/, ['', '+5', '5%%', '1e3', ' 5', '5\n'], (nodes) =>
    disrupt({ budgets: [{ nodes }] }),
  ),
  ...accepts('schedule', ['a b c d e', '0 0 * * * *', '@daily x', 'TZ=UTC 0 0 * * *'], (schedule) =>
    disrupt({ budgets: [{ nodes: '1', schedule, duration: '1h' }] }),
  ),
  ...refuses('price', /price.* should match/, ['1\n', '١', '1_0', 'NaN'], (price) => aNodeOverlay({ price })),
  ...accepts('price', ['00', '1.50', '99999999999999999999'], (price) => aNodeOverlay({ price })),
]

const updates: readonly CrdCase[] = [
  {
    name: 'a NodeClaim written again as it was',
    create: aNodeClaim({ expireAfter: '1h' }),
    change: { manifest: aNodeClaim({ expireAfter: '1h' }) },
    stored: { 'metadata.generation': 1 },
  },
  {
    name: 'a NodeClaim without its default again',
    create: aNodeClaim(),
    change: { manifest: aNodeClaim() },
    stored: { 'spec.expireAfter': '720h', 'metadata.generation': 1 },
  },
  {
    name: 'API-40 a NodeClaim that loses a field',
    create: aNodeClaim({ terminationGracePeriod: '1h' }),
    change: { manifest: aNodeClaim() },
    refused: /spec: .*spec is immutable/,
  },
  {
    name: 'API-34 a static pool of size 0 is static',
    create: aNodePool({ replicas: 0 }),
    change: { manifest: aNodePool() },
    refused: /cannot change between static/,
  },
  {
    name: 'API-33 a static pool gets a weight',
    create: aNodePool({ replicas: 1 }),
    change: { manifest: aNodePool({ replicas: 1, weight: 1 }) },
    refused: /'weight' does not work with 'replicas'/,
  },
  {
    name: 'a status is not taken on creation',
    create: { ...aNodePool(), status: { nodes: 3 } },
    stored: { status: undefined },
  },
]

export const formCases: readonly CrdCase[] = [
  ...nulls,
  ...empties,
  ...types,
  ...quantities,
  ...bounds,
  ...times,
  ...texts,
  ...updates,
]
