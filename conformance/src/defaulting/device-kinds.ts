/** Random claims, classes and slices of devices. */
import type { Kind } from './kind.ts'
import { record, spec } from './kind.ts'
import { type Choices, type Make, type OddDraw, odd } from './odd-draw.ts'
import { labels } from './pod-parts.ts'

const driver = 'gpu.example.com'
const drivers = [driver, odd('Bad_Driver'), odd(''), odd(`a.${'b'.repeat(62)}`)]
const long = 'x'.repeat(70)
const own = `device.attributes["${driver}"]`

const expressions = [
  `device.driver == "${driver}"`,
  `${own}.model == "a100"`,
  `${own}.shared`,
  `device.capacity["${driver}"].memory.compareTo(quantity("10Gi")) >= 0`,
  `cel.bind(dra, ${own}, dra.model == "a100" && dra.index > 1)`,
  `${own}.version.isGreaterThan(semver("1.0.0"))`,
  'device.allowMultipleAllocations',
  `${own}.model.matches("^a.*")`,
  `"${driver}" in device.attributes`,
  odd(''),
  odd('1 + 1'),
  odd('device.driver =='),
  odd('device.drive == "x"'),
  odd('device.driver == 1'),
  odd('nobody'),
  odd(`device.capacity["${driver}"].memory > 5`),
  odd('x'.repeat(10_241)),
]

const selectors: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.record({ cel: [(each: OddDraw) => each.record({ expression: expressions }), odd(undefined)] }),
  )

const tolerations: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.value([
      { key: 'example.com/broken', operator: 'Exists' },
      { key: 'broken', operator: 'Equal', value: 'x', effect: 'NoSchedule' },
      { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
      { key: 'broken', value: 'x' },
      odd({ operator: 'Exists', value: 'x' }),
      odd({ operator: 'Equal' }),
      odd({ key: 'a b', operator: 'Exists' }),
      odd({ key: 'a', operator: '' }),
      odd({ key: 'a', value: 'a b' }),
      odd({ operator: 'Foo', effect: 'Bar' }),
      odd({ operator: 'Exists', effect: '' }),
      odd({ operator: 'Exists', effect: 'PreferNoSchedule' }),
      odd({ operator: 'Exists', effect: 'None' }),
    ]),
  )

const way = (draw: OddDraw, named: Readonly<Record<string, Choices>> = {}, count = true): unknown =>
  draw.record(
    {
      ...named,
      deviceClassName: ['gpu', 'gpu.example.com', odd('GPU!'), odd(''), odd('a'.repeat(254))],
    },
    {
      selectors: [
        selectors,
        selectors,
        odd(Array.from({ length: 33 }, () => ({ cel: { expression: 'true' } }))),
      ],
      allocationMode: ['ExactCount', odd('All'), odd('Some'), odd('')],
      ...(count && { count: [1, 2, 32, odd(0), odd(-1), odd(33)] }),
      adminAccess: [odd(false), odd(true), undefined],
      tolerations: [
        tolerations,
        odd(Array.from({ length: 17 }, (_, index) => ({ key: `a${index}`, operator: 'Exists' }))),
      ],
      capacity: [
        { requests: { memory: '1Gi', [`${driver}/cores`]: '2' } },
        odd({ requests: { '1a': '1' } }),
        odd({ requests: {} }),
        odd({}),
      ],
    },
  )

const requests: Make = (draw) =>
  draw.list(1, 3, (one, index) => {
    const name = [`r${index}`, odd('r0'), odd('Bad_Name'), odd(''), odd('a'.repeat(64))]
    const alternatives: Make = (each) =>
      each.list(1, 2, (sub, at) => way(sub, { name: [`s${at}`, odd('s0'), odd('a/b'), odd('')] }))
    return one.value([
      (each: OddDraw) => each.record({ name, exactly: [(sub: OddDraw) => way(sub)] }),
      (each: OddDraw) => each.record({ name, firstAvailable: [alternatives, odd([])] }),
      (each: OddDraw) => ({
        name: `r${index}`,
        exactly: each.record({ deviceClassName: ['gpu'], allocationMode: ['All'] }),
      }),
      odd({ name: 'neither' }),
      odd({
        name: 'both',
        exactly: { deviceClassName: 'gpu' },
        firstAvailable: [{ name: 's0', deviceClassName: 'gpu' }],
      }),
    ])
  })

const references = [
  ['r0'],
  undefined,
  odd(['zzz']),
  odd(['r0/zzz']),
  odd(['r0', 'r0']),
  odd(['r0/s0/x']),
  odd(['r0/']),
  odd(['']),
  odd([]),
]

const constraints: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.record(
      {
        matchAttribute: [
          `${driver}/numa`,
          'resource.kubernetes.io/pcieRoot',
          odd('nodomain'),
          odd('a.b/x-y'),
          odd('/x'),
          odd('a/'),
          odd('a/b/c'),
          odd(`${driver}/${'x'.repeat(33)}`),
          odd(''),
        ],
      },
      { requests: references, distinctAttribute: [odd(`${driver}/numa`), undefined] },
    ),
  )

const configs: Make = (draw) =>
  draw.list(0, 1, (one) =>
    one.record(
      {
        opaque: [
          (each: OddDraw) =>
            each.record({
              driver: drivers,
              parameters: [
                { apiVersion: 'example.com/v1', kind: 'Config', a: [1] },
                {},
                odd({ a: 'x'.repeat(10_241) }),
              ],
            }),
          odd(undefined),
        ],
      },
      { requests: references },
    ),
  )

const claim: Make = record({
  devices: [
    (draw: OddDraw) =>
      draw.record(
        { requests: [requests, odd([]), odd(undefined)] },
        { constraints: [constraints], config: [configs] },
      ),
  ],
})

const classConfigs: Make = (draw) =>
  draw.list(0, 1, (one) =>
    one.record({
      opaque: [(each: OddDraw) => each.record({ driver: drivers, parameters: [{ a: 1 }] }), odd(undefined)],
    }),
  )

const attribute: Make = (draw) =>
  draw.value([
    { int: 3 },
    { bool: true },
    { string: 'a100' },
    { version: '1.20.0' },
    { version: '1.0.0-rc.1+build.2' },
    odd({ int: 1, bool: true }),
    odd({}),
    odd({ string: long }),
    odd({ string: '' }),
    odd({ version: '1.x' }),
    odd({ version: '01.0.0' }),
    odd({ version: `1.0.0-${'x'.repeat(64)}` }),
  ])

const attributeNames = [
  'model',
  'index',
  `${driver}/model`,
  'ext.example.com/other',
  'a-b',
  '/x',
  'a.b/',
  'a/b/c',
  '1a',
  'x'.repeat(33),
  'A_b/c',
]

/** Entries with random names, the first of which are valid. */
const named =
  (names: readonly string[], sound: number, make: Make): Make =>
  (draw: OddDraw) => {
    const entries = draw.list(0, 3, (one, index) => {
      const name = one.value([names[index % sound], ...names.slice(sound).map(odd)])
      return [String(name), make(one)] as const
    })
    return Object.fromEntries(entries as (readonly [string, unknown])[])
  }

const policy = [
  { default: '1Gi', validValues: ['1Gi', '2Gi', '4Gi'] },
  { default: '1Gi', validRange: { min: '1Gi', max: '8Gi', step: '1Gi' } },
  { default: '2Gi', validRange: { min: '1Gi' } },
  { default: '1Gi' },
  {},
  odd({ validValues: ['1Gi'] }),
  odd({ default: '3Gi', validValues: ['1Gi'] }),
  odd({ default: '1Gi', validValues: ['2Gi', '1Gi'] }),
  odd({ default: '1Gi', validValues: ['1Gi', '1Gi'] }),
  odd({ default: '1Gi', validValues: ['1Gi', '64Gi'] }),
  odd({ default: '1Gi', validValues: Array.from({ length: 11 }, (_, index) => `${index + 1}Gi`) }),
  odd({ validRange: { min: '1Gi' } }),
  odd({ default: '1Gi', validRange: {} }),
  odd({ default: '1Gi', validRange: { min: '2Gi' } }),
  odd({ default: '1Gi', validRange: { min: '64Gi' } }),
  odd({ default: '9Gi', validRange: { min: '1Gi', max: '8Gi' } }),
  odd({ default: '1Gi', validRange: { min: '1Gi', max: '64Gi' } }),
  odd({ default: '4Gi', validRange: { min: '4Gi', max: '2Gi' } }),
  odd({ default: '2Gi', validRange: { min: '1Gi', max: '8Gi', step: '2Gi' } }),
  odd({ default: '1Gi', validRange: { min: '1Gi', step: '64Gi' } }),
  odd({ default: '1Gi', validValues: ['1Gi'], validRange: { min: '1Gi' } }),
]

const capacity =
  (policies: Choices): Make =>
  (draw: OddDraw) => ({
    value: draw.draw.pick(['16Gi', '40Gi']),
    ...draw.record({}, { requestPolicy: policies }),
  })

const counters = named(['memory', 'cores', 'Bad_Name', '', 'a'.repeat(64)], 2, () => ({ value: '8' }))

const taints: Make = (draw) =>
  draw.list(0, 2, (one) =>
    one.record(
      {
        key: ['example.com/broken', 'broken', odd(''), odd('a b')],
        effect: ['NoSchedule', 'NoExecute', 'None', odd('PreferNoSchedule'), odd(''), odd('X')],
      },
      { value: ['x', '', odd('a b')], timeAdded: ['2026-01-01T00:00:00Z'] },
    ),
  )

const nodeSelector = [
  { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] },
  { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }] },
  odd({ nodeSelectorTerms: [] }),
  odd({
    nodeSelectorTerms: ['a', 'b'].map((key) => ({ matchExpressions: [{ key, operator: 'Exists' }] })),
  }),
  odd({ nodeSelectorTerms: [{ matchExpressions: [{ key: 'a b', operator: 'Exists' }] }] }),
  odd({ nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In', values: [] }] }] }),
]

const places: Make = (draw) =>
  draw.value([
    { nodeName: 'node-1' },
    (one: OddDraw) => ({ nodeSelector: one.value(nodeSelector) }),
    { allNodes: true },
    odd({}),
    odd({ allNodes: false }),
    odd({ nodeName: '' }),
    odd({ nodeName: 'Bad_Node' }),
    odd({ nodeName: 'node-1', allNodes: true }),
  ])

const device =
  (place: Make | undefined): Make =>
  (draw: OddDraw) => {
    const isShared = draw.draw.chance(30)
    const fields = draw.record(
      {},
      {
        ...(isShared && { allowMultipleAllocations: [true] }),
        attributes: [named(attributeNames, 4, attribute)],
        capacity: [
          named(
            ['memory', `${driver}/cores`, '1a', 'a/b/c'],
            2,
            capacity(isShared ? policy : [undefined, odd(policy[0])]),
          ),
        ],
        taints: [
          taints,
          odd(Array.from({ length: 17 }, (_, index) => ({ key: `a${index}`, effect: 'None' }))),
        ],
        consumesCounters: [
          (one: OddDraw) =>
            one.list(0, 2, (each, index) =>
              each.record({
                counterSet: [`set-${index}`, odd('set-0'), odd(''), odd('Bad_Set')],
                counters: [counters, { memory: { value: '8' } }, odd({})],
              }),
            ),
          odd(
            Array.from({ length: 3 }, (_, index) => ({
              counterSet: `s${index}`,
              counters: { a: { value: '1' } },
            })),
          ),
        ],
        bindingConditions: [odd(['a.b/ready']), undefined],
        nodeName: [odd('node-1'), undefined],
      },
    )
    const where = place === undefined ? {} : draw.value([place])
    return { ...fields, ...(typeof where === 'object' && where) }
  }

const devices =
  (place?: Make): Make =>
  (draw: OddDraw) =>
    draw.list(0, 3, (one, index) => {
      const drawn = one.value([device(place)])
      const name = one.value([`d${index}`, odd('d0'), odd('X_1'), odd(''), odd(undefined)])
      return typeof drawn === 'object' && drawn !== null ? { name, ...drawn } : drawn
    })

const sliceSpec: Make = (draw) => {
  const isPlaced = draw.draw.chance(20)
  const where = isPlaced ? { perDeviceNodeSelection: true } : (draw.value([places]) as object | null)
  const what = draw.draw.chance(25)
    ? {
        sharedCounters: draw.value([
          (one: OddDraw) =>
            one.list(1, 2, (each, index) =>
              each.record({
                name: [`set-${index}`, odd('set-0'), odd(''), odd('Bad_Set')],
                counters: [counters, odd({}), odd(undefined)],
              }),
            ),
          odd(
            Array.from({ length: 9 }, (_, index) => ({ name: `s${index}`, counters: { a: { value: '1' } } })),
          ),
        ]),
      }
    : {
        devices: draw.value([
          devices(isPlaced ? places : undefined),
          odd(Array.from({ length: 129 }, (_, index) => ({ name: `d${index}` }))),
          odd(
            Array.from({ length: 65 }, (_, index) => ({
              name: `d${index}`,
              taints: [{ key: 'a', effect: 'None' }],
            })),
          ),
          odd([
            {
              name: 'd0',
              attributes: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`a${at}`, { int: at }])),
            },
          ]),
        ]),
      }
  const head = draw.record({
    driver: drivers,
    pool: [
      (one: OddDraw) =>
        one.record({
          name: ['node-1/gpus', 'a', odd('A'), odd('a//b'), odd(''), odd('a'.repeat(254))],
          generation: [1, 0, odd(-1)],
          resourceSliceCount: [1, 2, odd(0), odd(-1)],
        }),
    ],
  })
  return { ...head, ...where, ...what }
}

/** The kinds of `resource.k8s.io`. */
export const deviceKinds: readonly Kind[] = [
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    resource: 'resourceclaims',
    isNamespaced: true,
    fields: record({ spec: [claim] }),
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    resource: 'resourceclaimtemplates',
    isNamespaced: true,
    fields: spec(
      { spec: [claim] },
      { metadata: [record({}, { labels: [labels], annotations: [{ a: 'b' }] })] },
    ),
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    resource: 'deviceclasses',
    isNamespaced: false,
    fields: spec(
      {},
      {
        selectors: [selectors, odd([])],
        config: [classConfigs],
        extendedResourceName: [
          'example.com/gpu',
          odd('gpu'),
          odd('kubernetes.io/gpu'),
          odd('a b/c'),
          odd(''),
        ],
      },
    ),
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    resource: 'resourceslices',
    isNamespaced: false,
    fields: record({ spec: [sliceSpec] }),
  },
]
