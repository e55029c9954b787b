/** Requirements and taints, on the templates of NodePools and on NodeClaims (api.md 3.1 to 3.3). */
import { accepts, type CrdCase, type Manifest, numbered, refuses } from './crd-case.test-support.ts'
import { aNodeClaim, poolOf, requirement } from './manifests.test-support.ts'

type Build = (fields: Readonly<Record<string, unknown>>) => Manifest

const kinds: readonly (readonly [kind: string, build: Build])[] = [
  ['NodePool', poolOf],
  ['NodeClaim', aNodeClaim],
]

const badKeys = ['test.com.com}', 'Test.com/test', 'a/b/c', 'test/', '/test', '']
const goodKeys = ['Test', 'key-only', 'test.com/Test']

function taintCases(kind: string, build: Build): readonly CrdCase[] {
  const taint = (fields: object) =>
    build({ taints: [{ key: 'example.com/a', effect: 'NoSchedule', ...fields }] })
  const both = (taints: readonly object[], startupTaints: readonly object[]) =>
    build({ taints, startupTaints })
  const key = 'example.com/a'
  return [
    ...refuses(`API-12 ${kind} taint key`, /taints\[0\]\.key.* should /, badKeys, (value) =>
      taint({ key: value }),
    ),
    ...refuses(
      `API-12 ${kind} startup taint key`,
      /startupTaints\[0\]\.key.* should match/,
      ['a/b/c'],
      (value) => both([], [{ key: value, effect: 'NoExecute' }]),
    ),
    ...accepts(`API-12 ${kind} taint key`, goodKeys, (value) => taint({ key: value })),
    ...accepts(`API-13 ${kind} taint key, refused later`, [`${'a'.repeat(254)}.com/test`], (value) =>
      taint({ key: value }),
    ),
    ...refuses(`API-14 ${kind} taint value`, /taints\[0\]\.value.* should match/, ['???', ''], (value) =>
      taint({ value }),
    ),
    ...accepts(`${kind} taint value`, ['true', 'a.b/c'], (value) => taint({ value })),
    ...refuses(
      `API-14 ${kind} taint effect`,
      /taints\[0\]\.effect: Unsupported value/,
      ['???', ''],
      (effect) => taint({ effect }),
    ),
    ...refuses(`${kind} taint effect`, /taints\[0\]\.effect: Required value/, [undefined], (effect) =>
      taint({ effect }),
    ),
    ...accepts(`${kind} taint effect`, ['NoSchedule', 'PreferNoSchedule', 'NoExecute'], (effect) =>
      taint({ effect }),
    ),
    ...accepts(`${kind} taint timeAdded`, ['2026-11-21T05:00:00Z'], (timeAdded) => taint({ timeAdded })),
    ...refuses(`${kind} taint timeAdded`, /timeAdded.* must be of type date-time/, ['now'], (timeAdded) =>
      taint({ timeAdded }),
    ),
    {
      name: `API-15 ${kind} one taint key with two effects`,
      create: both(
        [
          { key, effect: 'NoSchedule' },
          { key, effect: 'NoExecute' },
        ],
        [],
      ),
    },
    {
      name: `API-16 ${kind} the same taint in both lists, refused later`,
      create: both([{ key, effect: 'NoSchedule' }], [{ key, effect: 'NoSchedule' }]),
    },
  ]
}

/** Which labels may be bounded, whatever the kind. */
export function keyCases(kind: string, build: Build): readonly CrdCase[] {
  const required = (key: string | undefined) =>
    build({ requirements: [requirement('Exists', undefined, { key })] })
  return [
    ...refuses(
      `API-17 ${kind} requirement key`,
      /requirements\[0\]\.key: .*label domain "karpenter.sh" is restricted/,
      ['karpenter.sh/test', 'foo.karpenter.sh/x', 'mykarpenter.sh/x', 'karpenter.sh'],
      required,
    ),
    ...refuses(
      `API-17 ${kind} requirement key`,
      /requirements\[0\]\.key: .*label "kubernetes.io\/hostname" is restricted/,
      ['kubernetes.io/hostname'],
      required,
    ),
    ...accepts(
      `API-17 ${kind} requirement key`,
      [
        'kubernetes.io/test',
        'subdomain.k8s.io/test',
        'node-restriction.kubernetes.io/x',
        'karpenter.sh/capacity-type',
        'karpenter.kwok.sh/instance-cpu',
        'exoscale.com/instance-family',
      ],
      required,
    ),
    ...refuses(`${kind} requirement key`, /requirements\[0\]\.key.* should match/, badKeys, required),
    ...refuses(`${kind} requirement key`, /requirements\[0\]\.key: Required value/, [undefined], required),
    ...accepts(
      `API-18 ${kind} long requirement key`,
      [`test.com/${'a'.repeat(64)}`, 'a'.repeat(316)],
      required,
    ),
    ...refuses(
      `API-18 ${kind} requirement key`,
      /requirements\[0\]\.key: Too long: may not be more than 316 bytes/,
      ['a'.repeat(317)],
      required,
    ),
  ]
}

const integerRule = /requirements: .*operators "Gt", "Lt", "Gte" and "Lte" need a single non-negative integer/
const comparisons = ['Gt', 'Lt', 'Gte', 'Lte']

/** How labels may be bounded, whatever the kind. */
export function operatorCases(kind: string, build: Build): readonly CrdCase[] {
  const only = (item: object) => build({ requirements: [item] })
  const valued = (operator: string) => (values: readonly string[] | undefined) =>
    only(requirement(operator, values))
  return [
    ...comparisons.flatMap((operator) => [
      ...refuses(
        `API-19 ${kind} ${operator}`,
        integerRule,
        [[], ['1', '2'], ['a'], ['-1'], ['1.5'], [''], ['9223372036854775808'], undefined],
        valued(operator),
      ),
      ...accepts(`API-19 ${kind} ${operator}`, [['0'], ['9223372036854775807']], valued(operator)),
    ]),
    ...refuses(`API-20 ${kind} operator`, /operator: Unsupported value/, ['unknown', 'in', ''], (operator) =>
      only(requirement(operator, ['a'])),
    ),
    ...accepts(`${kind} operator`, ['Exists', 'DoesNotExist'], (operator) => only(requirement(operator))),
    ...refuses(`${kind} operator`, /operator: Required value/, [undefined], (operator) =>
      only({ key: 'a', values: ['b'], operator }),
    ),
    ...refuses(
      `${kind} In`,
      /requirements: .*operator "In" needs at least one value/,
      [[], undefined],
      valued('In'),
    ),
    ...refuses(`${kind} values`, /values\[0\].* must be of type string/, [4], (value) =>
      only({ key: 'a', operator: 'In', values: [value] }),
    ),
    ...accepts(`API-23 ${kind} In with many values`, [90, 1000], (count) =>
      only(requirement('In', numbered('value-', count))),
    ),
    ...accepts(`API-38 ${kind} value, refused later`, ['a'.repeat(64), 'not a label value!'], (value) =>
      only(requirement('In', [value])),
    ),
    ...accepts(`API-37 ${kind} capacity type`, [['spot', 'bogus'], ['bogus']], (values) =>
      only(requirement('In', values, { key: 'karpenter.sh/capacity-type' })),
    ),
    {
      name: `API-25 ${kind} In and NotIn on one key`,
      create: build({
        requirements: [requirement('In', ['test', 'foo']), requirement('NotIn', ['test', 'bar'])],
      }),
    },
    ...refuses(
      `API-24 ${kind} requirements`,
      /requirements: Too many: 101: must have at most 100 items/,
      [101],
      (count) => build({ requirements: numbered('key-', count).map((key) => ({ key, operator: 'Exists' })) }),
    ),
    ...accepts(`API-24 ${kind} requirements`, [100], (count) =>
      build({ requirements: numbered('key-', count).map((key) => ({ key, operator: 'Exists' })) }),
    ),
  ]
}

function minValuesCases(kind: string, build: Build): readonly CrdCase[] {
  const only = (item: object) => build({ requirements: [item] })
  return [
    ...refuses(
      `API-21 ${kind} minValues`,
      /minValues.* should be (greater than or equal to 1|less than or equal to 50)/,
      [-1, 0, 51],
      (minValues) => only(requirement('Exists', undefined, { minValues })),
    ),
    ...accepts(`API-21 ${kind} minValues`, [1, 50], (minValues) =>
      only(requirement('Exists', undefined, { minValues })),
    ),
    ...refuses(
      `API-22 ${kind} In with minValues 2`,
      /requirements: .*operator "In" with minValues needs at least that many values/,
      [['a']],
      (values) => only(requirement('In', values, { minValues: 2 })),
    ),
    ...accepts(
      `API-22 ${kind} In with minValues 2`,
      [
        ['a', 'b'],
        ['a', 'a'],
      ],
      (values) => only(requirement('In', values, { minValues: 2 })),
    ),
    ...accepts(`API-22 ${kind} NotIn with minValues 2`, [['a']], (values) =>
      only(requirement('NotIn', values, { minValues: 2 })),
    ),
  ]
}

/** Of the simulated provider's domain only its own labels may be bounded; whether they mean anything is not asked. */
function simulatedKeyCases(kind: string, build: Build): readonly CrdCase[] {
  const required = (key: string) => build({ requirements: [requirement('Exists', undefined, { key })] })
  return [
    ...refuses(
      `${kind} requirement key`,
      /requirements\[0\]\.key: .*label domain "karpenter.kwok.sh" is restricted/,
      ['karpenter.kwok.sh/foo', 'sub.karpenter.kwok.sh/instance-cpu', 'mykarpenter.kwok.sh/x'],
      required,
    ),
    ...accepts(
      `${kind} requirement key`,
      ['kwoknodeclass', 'instance-cpu', 'instance-memory', 'instance-family', 'instance-size'].map(
        (name) => `karpenter.kwok.sh/${name}`,
      ),
      required,
    ),
  ]
}

const nodePoolLabel = (build: Build) =>
  build({ requirements: [requirement('In', ['x'], { key: 'karpenter.sh/nodepool' })] })

export const templateCases: readonly CrdCase[] = [
  ...kinds.flatMap(([kind, build]) => [
    ...taintCases(kind, build),
    ...keyCases(kind, build),
    ...simulatedKeyCases(kind, build),
    ...operatorCases(kind, build),
    ...minValuesCases(kind, build),
    ...accepts(`${kind} NotIn`, [[], ['a'], undefined], (values) =>
      build({ requirements: [requirement('NotIn', values)] }),
    ),
  ]),
  {
    name: 'API-17 a NodePool may not require karpenter.sh/nodepool',
    create: nodePoolLabel(poolOf),
    refused: /requirements\[0\]\.key: .*label "karpenter.sh\/nodepool" is restricted/,
  },
  { name: 'API-39 a NodeClaim may require karpenter.sh/nodepool', create: nodePoolLabel(aNodeClaim) },
]
