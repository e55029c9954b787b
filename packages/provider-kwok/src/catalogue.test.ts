import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import { defaultCatalogue } from './catalogue.ts'
import { readCatalogue } from './catalogue-file.ts'

const zoneA = [
  { key: labels.zone, operator: 'In', values: ['zone-a'] },
  { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
]
const anItem = {
  name: 'one',
  architecture: 'amd64',
  operatingSystems: ['linux'],
  resources: { cpu: '4', memory: '16Gi', pods: '50' },
  offerings: [{ Price: 0.5, Available: true, Requirements: zoneA }],
}

function read(...items: readonly unknown[]) {
  return readCatalogue(JSON.stringify(items))
}

function readOne(changes: object): InstanceType {
  const { types, problems } = read({ ...anItem, ...changes })
  assert.deepEqual(problems, [])
  const [type] = types
  assert.ok(type)
  return type
}

function labelOf({ requirements }: InstanceType, key: string): string | undefined {
  return requirements.find((each) => each.key === key)?.values?.join(',')
}

const instance = (name: string) => `karpenter.kwok.sh/instance-${name}`

describe('the catalogue without a file', () => {
  const types = defaultCatalogue()
  const named = (name: string) => types.find((type) => type.name === name)
  const onDemand = (name: string) =>
    named(name)?.offerings.find(({ requirements }) =>
      requirements.some(({ values }) => values?.[0] === 'on-demand'),
    )?.pricePerHour

  test('it has 144 types with 8 offerings each, from small to large', () => {
    assert.equal(types.length, 144)
    assert.equal(new Set(types.map(({ name }) => name)).size, 144)
    assert.ok(types.every(({ offerings }) => offerings.length === 8))
    assert.deepEqual(
      types.slice(0, 6).map(({ name }) => name),
      [
        'c-1x-amd64-linux',
        'c-1x-arm64-linux',
        'c-1x-amd64-windows',
        'c-1x-arm64-windows',
        's-1x-amd64-linux',
        's-1x-arm64-linux',
      ],
    )
    assert.equal(types.at(-1)?.name, 'm-256x-arm64-windows')
  })

  test('prices follow cpu and memory; spot costs 70 %', () => {
    assert.equal(onDemand('c-1x-amd64-linux')?.toFixed(12), '0.027147483648')
    assert.equal(onDemand('m-4x-amd64-linux')?.toFixed(12), '0.134359738368')
    const [spot] = named('c-1x-amd64-linux')?.offerings ?? []
    assert.equal(spot?.pricePerHour?.toFixed(9), (0.027147483648 * 0.7).toFixed(9))
  })

  test('capacity, what is kept back, and labels', () => {
    const type = named('c-16x-amd64-linux')
    assert.ok(type)
    assert.deepEqual(type.capacity, {
      cpu: 16_000,
      memory: 32 * 1024 ** 3,
      pods: 256,
      'ephemeral-storage': 20 * 1024 ** 3,
    })
    assert.deepEqual(type.overhead.kubeReserved, { cpu: 100, memory: 10 * 1024 ** 2 })
    assert.equal(named('m-256x-arm64-windows')?.capacity['pods'], 1024)
    assert.deepEqual(
      [instance('size'), instance('family'), instance('cpu'), instance('memory'), labels.zone].map((key) =>
        labelOf(type, key),
      ),
      ['16', 'c', '16', '32Gi', 'test-zone-a,test-zone-b,test-zone-c,test-zone-d'],
    )
  })
})

describe('a catalogue from a file', () => {
  test('fields are found whatever their case', () => {
    const { types, problems } = readCatalogue(`[{
      "NAME": "one", "Architecture": "amd64", "operatingsystems": ["linux"],
      "Resources": {"cpu": "4", "memory": "16Gi", "pods": 50, "example.com/GPU": "2"},
      "OFFERINGS": [{"price": 0.5, "available": true, "requirements": [
        {"Key": "topology.kubernetes.io/zone", "Operator": "In", "Values": ["zone-a"]},
        {"KEY": "karpenter.sh/capacity-type", "OPERATOR": "In", "VALUES": ["on-demand"]}]}]}]`)
    assert.deepEqual(problems, [])
    const resources = { ...anItem.resources, 'example.com/GPU': '2' }
    assert.deepEqual(types, [readOne({ resources })])
  })

  test('OPS-72 a type that does not tell how many pods it takes is given 110', () => {
    assert.equal(readOne({ resources: { cpu: '4', memory: '16Gi' } }).capacity['pods'], 110)
    assert.equal(readOne({}).capacity['pods'], 50)
  })

  test('OPS-73 family and size come from the name, or from its beginning and the cpu', () => {
    const listed = (name: string) => {
      const type = readOne({ name })
      return [labelOf(type, instance('family')), labelOf(type, instance('size'))]
    }
    assert.deepEqual(listed('m5.2xlarge'), ['m5', '2xlarge'])
    assert.deepEqual(listed('m5.xlarge'), ['m5', 'xlarge'])
    assert.deepEqual(listed('m5.metal'), ['m5', 'metal'])
    assert.deepEqual(listed('n2-standard-4'), ['n2', '4'])
    assert.deepEqual(listed('Standard'), ['S', '4'])
    assert.deepEqual(listed('m5.huge'), ['m5', '4'])
  })

  test('cpu and memory are told as quantities; zones and capacity types are those of the offerings', () => {
    const offering = (zone: string, capacityType: string) => ({
      Price: 1,
      Requirements: [
        { key: labels.zone, operator: 'In', values: [zone] },
        { key: labels.capacityType, operator: 'In', values: [capacityType] },
      ],
    })
    const type = readOne({
      resources: { cpu: '4000m', memory: '32768Mi' },
      offerings: [offering('a', 'spot'), offering('b', 'spot'), offering('a', 'on-demand')],
    })
    assert.equal(labelOf(type, instance('cpu')), '4')
    assert.equal(labelOf(type, instance('memory')), '32Gi')
    assert.equal(labelOf(type, labels.zone), 'a,b')
    assert.equal(labelOf(type, labels.capacityType), 'spot,on-demand')
  })

  test('OPS-75 offerings of the older flat form equal those with requirements', () => {
    const flat = { capacityType: 'on-demand', zone: 'zone-a', price: 0.5 }
    assert.deepEqual(readOne({ offerings: [flat] }), readOne({}))
  })

  test('every offering is available at first; reservations keep their count', () => {
    const offerings = [{ Price: 0.5, Available: false, Requirements: zoneA, ReservationCapacity: 3 }]
    const [offering] = readOne({ offerings }).offerings
    assert.equal(offering?.available, true)
    assert.equal(offering?.reservationCapacity, 3)
  })

  test('what cannot be used is named and left out; the rest stands', () => {
    const bad = [
      { ...anItem, name: 'no-cpu', resources: { memory: '1Gi' } },
      { ...anItem, name: 'odd-memory', resources: { cpu: '1', memory: 'lots' } },
      { ...anItem, name: 'no-os', operatingSystems: [] },
      { ...anItem, name: 'no-offering', offerings: [] },
      { ...anItem, name: undefined },
      { ...anItem },
      'text',
    ]
    const half = { ...anItem, name: 'half', offerings: [{ Price: -1 }, ...anItem.offerings] }
    const { types, problems } = read(anItem, ...bad, half)
    assert.deepEqual(
      types.map(({ name, offerings }) => `${name} ${offerings.length}`),
      ['one 1', 'half 1'],
    )
    assert.equal(problems.length, bad.length + 1)
    for (const [index, what] of [
      /^instance type no-cpu is skipped: resources\.cpu/,
      /^instance type odd-memory is skipped: resources\.memory: give a quantity/,
      /^instance type no-os is skipped: operatingSystems/,
      /^instance type no-offering is skipped: offerings/,
      /^item 5 is skipped: name/,
      /^instance type one is skipped: another item/,
      /^item 7 is skipped: give an object/,
      /^instance type half: offerings\[0\] is skipped: Price/,
    ].entries())
      assert.match(problems[index] ?? '', what)
  })

  test('a text that is no array of types gives none, and says what to give', () => {
    for (const text of ['', '{', '{}', 'null']) {
      const { types, problems } = readCatalogue(text)
      assert.deepEqual([types.length, problems.length], [0, 1], text)
    }
  })
})
