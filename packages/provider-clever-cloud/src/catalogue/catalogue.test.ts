import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Resources } from '@tenon/api'
import { silentLogger } from '@tenon/runtime'
import { Catalogue } from './catalogue.ts'
import { type FlavorOverrides, noOverrides, readOverrides } from './overrides.ts'
import type { NodeReport } from './reports.ts'

const ki = 1024

function aCatalogue(overrides: FlavorOverrides = noOverrides): Catalogue {
  return new Catalogue({ region: 'par', overrides, logger: silentLogger })
}

function withFile(text: string): Catalogue {
  const { ok, error } = readOverrides(text)
  assert.equal(error, undefined)
  return aCatalogue(ok)
}

function typeIn(catalogue: Catalogue, flavor: string): InstanceType {
  const type = catalogue.types().find(({ name }) => name === flavor)
  assert.ok(type)
  return type
}

function prices(catalogue: Catalogue): Readonly<Record<string, number | undefined>> {
  return Object.fromEntries(
    catalogue.types().map(({ name, offerings }) => [name, offerings[0]?.pricePerHour]),
  )
}

function allocatable({ capacity, overhead }: InstanceType): Resources {
  const kept = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold]
  return Object.fromEntries(
    Object.entries(capacity).map(([resource, amount]) => [
      resource,
      kept.reduce((left, each) => left - (each[resource] ?? 0), amount),
    ]),
  )
}

function labelOf(
  { requirements }: Pick<InstanceType, 'requirements'>,
  key: string,
): readonly string[] | undefined {
  return requirements.find((each) => each.key === key)?.values
}

function aReport(flavor: string, memoryKi: number, changes: Partial<NodeReport> = {}): NodeReport {
  const shared = { 'ephemeral-storage': 40_971_488 * ki, pods: 110 }
  const cpu = flavor === 'L' ? 12_000 : 6000
  return {
    nodeName: 'a-node0',
    flavor,
    nodeGroup: { name: 'a', flavor },
    role: 'worker',
    capacity: { ...shared, cpu, memory: memoryKi * ki },
    allocatable: { ...shared, 'ephemeral-storage': 37_759_323_279, cpu, memory: (memoryKi - 102_400) * ki },
    ...changes,
  }
}

describe('the built-in flavors', () => {
  test('CLV-38 six types with one offering each, a price, and less to allocate than they have', () => {
    const types = aCatalogue().types()
    assert.deepEqual(
      types.map(({ name }) => name),
      ['2XS', 'XS', 'S', 'M', 'L', 'XL'],
    )
    for (const type of types) {
      assert.equal(type.offerings.length, 1)
      assert.equal(type.offerings[0]?.available, true)
      assert.ok((type.offerings[0]?.pricePerHour ?? 0) > 0)
      assert.ok((allocatable(type)['memory'] ?? 0) < (type.capacity['memory'] ?? 0))
    }
  })

  test('CLV-1 CLV-94 every label of a node of the type, zone and region the same', () => {
    const type = typeIn(aCatalogue(), 'XS')
    assert.deepEqual(
      type.requirements.map(({ key, operator, values }) => [key, operator, ...(values ?? [])]),
      [
        ['node.kubernetes.io/instance-type', 'In', 'XS'],
        ['kubernetes.io/arch', 'In', 'amd64'],
        ['kubernetes.io/os', 'In', 'linux'],
        ['topology.kubernetes.io/region', 'In', 'par'],
        ['topology.kubernetes.io/zone', 'In', 'par'],
        ['karpenter.sh/capacity-type', 'In', 'on-demand'],
        ['clever-cloud.com/flavor', 'In', 'XS'],
        ['clever-cloud.com/cluster-node-role', 'In', 'worker'],
        ['karpenter.clever-cloud.com/instance-cpu', 'In', '6'],
        ['karpenter.clever-cloud.com/instance-memory', 'In', '7553664', '7937580'],
      ],
    )
    const [offering] = type.offerings
    assert.ok(offering)
    assert.deepEqual(labelOf(offering, labels.zone), ['par'])
    assert.deepEqual(labelOf(offering, labels.capacityType), ['on-demand'])
  })

  test('CLV-38 100Mi of memory and the eviction threshold are kept back', () => {
    const type = typeIn(aCatalogue(), '2XS')
    assert.deepEqual(type.capacity, {
      cpu: 4000,
      memory: 3_715_344 * ki,
      'ephemeral-storage': 40_971_488 * ki,
      pods: 110,
    })
    assert.deepEqual(allocatable(type), {
      cpu: 4000,
      memory: (3_715_344 - 102_400) * ki,
      'ephemeral-storage': 37_759_323_279,
      pods: 110,
    })
  })

  test('CLV-2 CLV-4 the order is that of the sizes, and larger flavors cost more', () => {
    const all = Object.values(prices(aCatalogue()))
    assert.deepEqual(all, [1, 1.8554, 2.7097, 3.566, 5.1084, 6.8212])
    assert.equal(aCatalogue().priceUnit, '2XS-equivalents')
  })

  test('CLV-98 no type says anything of a label that the provider does not know', () => {
    for (const { requirements } of aCatalogue().types())
      assert.equal(
        requirements.find(({ key }) => key === 'team'),
        undefined,
      )
  })

  test('CLV-53 CLV-54 without a file, and with one that is not valid, the built-in flavors are offered', () => {
    const { ok, error } = readOverrides('- name: M\n  cpu: 0\n')
    assert.match(error ?? '', /^line 2/)
    assert.deepEqual(aCatalogue(ok ?? noOverrides).types(), aCatalogue().types())
  })
})

describe('a file', () => {
  test('CLV-48 a price of one flavor puts all in euros and changes no other', () => {
    const catalogue = withFile('- {name: M, priceHourly: 0.10}')
    assert.equal(catalogue.priceUnit, 'EUR')
    assert.deepEqual(prices(catalogue), {
      '2XS': 0.0333,
      XS: 0.0611,
      S: 0.0889,
      M: 0.1,
      L: 0.1667,
      XL: 0.2222,
    })
  })

  test('CLV-49 a flavor that is only named stays as it is', () => {
    assert.deepEqual(withFile('- name: L').types(), aCatalogue().types())
  })

  test('CLV-50 a flavor of its own comes last, with every field', () => {
    const catalogue = withFile(
      '- {name: CUSTOM, cpu: 6, memoryKi: 8000000, priceHourly: 0.05}\n- name: 2XS\n',
    )
    assert.deepEqual(
      catalogue.types().map(({ name }) => name),
      ['2XS', 'XS', 'S', 'M', 'L', 'XL', 'CUSTOM'],
    )
    const type = typeIn(catalogue, 'CUSTOM')
    assert.deepEqual([type.capacity['cpu'], type.capacity['memory']], [6000, 8_000_000 * ki])
    assert.equal(prices(catalogue)['CUSTOM'], 0.05)
    assert.deepEqual(catalogue.sizeOf('CUSTOM')?.memoryKi, 8_000_000)
  })

  test('CLV-51 a flavor without a price in a catalogue in euros is neither free nor left out', () => {
    const catalogue = withFile('- {name: CUSTOM, cpu: 6, memoryKi: 8000000}\n- {name: M, priceHourly: 0}')
    assert.equal(prices(catalogue)['M'], 0)
    assert.ok('CUSTOM' in prices(catalogue))
    assert.equal(prices(catalogue)['CUSTOM'], undefined)
    assert.equal(prices(withFile('- {name: CUSTOM, cpu: 4, memoryKi: 3715344}'))['CUSTOM'], 1)
  })

  test('CLV-48 a corrected size changes labels, capacity and the relative price of that flavor', () => {
    const catalogue = withFile('- {name: M, memoryKi: 15000000}')
    const type = typeIn(catalogue, 'M')
    assert.equal(type.capacity['memory'], 15_000_000 * ki)
    assert.equal(type.capacity['cpu'], 10_000)
    assert.deepEqual(labelOf(type, 'karpenter.clever-cloud.com/instance-memory'), ['15000000'])
    assert.deepEqual(prices(catalogue), { ...prices(aCatalogue()), M: 3.5249 })
    assert.deepEqual(catalogue.sizeOf('M'), { ...catalogue.sizeOf('M'), cpu: 10, memoryKi: 15_000_000 })
  })
})

describe('what nodes tell', () => {
  test('CLV-40 capacity and what is kept back are those of the node, labels and price those of the catalogue', () => {
    const catalogue = aCatalogue()
    const before = catalogue.types()
    assert.deepEqual(catalogue.observe(aReport('L', 24_117_248)), { kind: 'accepted' })
    const type = typeIn(catalogue, 'L')
    assert.equal(type.capacity['memory'], 24_117_248 * ki)
    assert.equal(type.overhead.kubeReserved['memory'], 102_400 * ki)
    assert.deepEqual(type.overhead.evictionThreshold, {}, 'the threshold is not counted twice')
    assert.equal(allocatable(type)['ephemeral-storage'], 37_759_323_279)
    assert.deepEqual(type.requirements, before[4]?.requirements)
    assert.deepEqual(type.offerings, before[4]?.offerings)
    assert.deepEqual(catalogue.sizeOf('L')?.memoryKi, 22_896_304)
  })

  test('CLV-103 a resource beside the usual ones is offered, and all that a node can give', () => {
    const catalogue = aCatalogue()
    const { capacity, allocatable: gives } = aReport('L', 22_000_000)
    const report = aReport('L', 22_000_000, {
      capacity: { ...capacity, 'example.com/gpu': 2 },
      allocatable: { ...gives, 'example.com/gpu': 1 },
    })
    catalogue.observe(report)
    assert.equal(typeIn(catalogue, 'L').capacity['example.com/gpu'], 2)
    assert.deepEqual(allocatable(typeIn(catalogue, 'L')), report.allocatable)
  })

  test('the smallest of all nodes counts, whichever comes first', () => {
    const sizes = [22_500_000, 21_500_000, 22_000_000]
    for (const order of [sizes, sizes.toReversed(), sizes.toSorted((a, b) => a - b)]) {
      const catalogue = aCatalogue()
      for (const size of order) assert.deepEqual(catalogue.observe(aReport('L', size)), { kind: 'accepted' })
      assert.equal(typeIn(catalogue, 'L').capacity['memory'], 21_500_000 * ki)
    }
  })

  test('nodes that shrink little by little are compared with the catalogue, not with one another', () => {
    const catalogue = aCatalogue()
    const verdicts = [22_000_000, 21_000_000, 20_000_000, 19_000_000].map(
      (size) => catalogue.observe(aReport('L', size)).kind,
    )
    assert.deepEqual(verdicts, ['accepted', 'accepted', 'refused', 'refused'])
    assert.equal(typeIn(catalogue, 'L').capacity['memory'], 21_000_000 * ki)
  })

  test('CLV-41 CLV-65 what is ignored or refused changes nothing', () => {
    const catalogue = aCatalogue()
    const before = catalogue.types()
    for (const report of [
      aReport('L', 0),
      aReport('L', 1),
      aReport('L', 22_000_000, { role: 'control-plane' }),
      aReport('L', 22_000_000, { nodeName: 'b-node0' }),
    ])
      assert.notEqual(catalogue.observe(report).kind, 'accepted')
    assert.equal(catalogue.types(), before)
  })

  test('CLV-42 what a caller does with its lists afterwards makes no difference', () => {
    const catalogue = aCatalogue()
    const capacity = { ...aReport('L', 22_000_000).capacity }
    catalogue.observe(aReport('L', 22_000_000, { capacity }))
    capacity['memory'] = 1
    assert.equal(typeIn(catalogue, 'L').capacity['memory'], 22_000_000 * ki)
  })
})

describe('the list', () => {
  test('CLV-39 nobody can change it, or anything in it', () => {
    const catalogue = aCatalogue()
    const types = catalogue.types()
    const everything: unknown[] = [types]
    for (const value of everything) {
      if (typeof value !== 'object' || value === null) continue
      assert.ok(Object.isFrozen(value), JSON.stringify(value))
      everything.push(...Object.values(value))
    }
    assert.throws(() => Object.assign(types[0] ?? {}, { name: 'x' }), TypeError)
  })

  test('it stays the same list of the same types until something changes', () => {
    const catalogue = aCatalogue()
    const before = catalogue.types()
    assert.equal(catalogue.types(), before)
    catalogue.observe(aReport('L', 22_000_000))
    const after = catalogue.types()
    assert.notEqual(after, before)
    assert.deepEqual(
      after.map((type, index) => type === before[index]),
      [true, true, true, true, false, true],
    )
    catalogue.observe(aReport('L', 22_000_000))
    catalogue.observe(aReport('L', 22_500_000))
    assert.equal(catalogue.types(), after, 'a larger node changes nothing')
    assert.equal(catalogue.typeOf('L').type, after[4])
  })
})

describe('a flavor that is not sold', () => {
  test('CLV-34 nothing is made up of it, and nothing is below zero', () => {
    const { isServed, type } = aCatalogue().typeOf('CUSTOM')
    assert.equal(isServed, false)
    assert.equal(type.capacity['cpu'] ?? 0, 0)
    assert.equal(type.capacity['memory'] ?? 0, 0)
    assert.ok(Object.values(allocatable(type)).every((amount) => amount >= 0))
    assert.deepEqual(labelOf(type, 'clever-cloud.com/flavor'), ['CUSTOM'])
    assert.deepEqual(labelOf(type, labels.zone), ['par'])
    assert.equal(labelOf(type, 'karpenter.clever-cloud.com/instance-cpu'), undefined)
    assert.deepEqual(
      type.offerings.map(({ available, pricePerHour }) => [available, pricePerHour]),
      [[false, undefined]],
    )
  })

  test('CLV-35 it has what its nodes have told', () => {
    const catalogue = aCatalogue()
    assert.deepEqual(catalogue.observe(aReport('CUSTOM', 8_000_000)), { kind: 'accepted' })
    const { isServed, type } = catalogue.typeOf('CUSTOM')
    assert.equal(isServed, false)
    assert.equal(type.capacity['cpu'], 6000)
    assert.equal(allocatable(type)['memory'], 7_897_600 * ki)
    assert.deepEqual(labelOf(type, 'karpenter.clever-cloud.com/instance-cpu'), ['6'])
    assert.deepEqual(labelOf(type, 'karpenter.clever-cloud.com/instance-memory'), ['8000000'])
  })

  test('CLV-36 it is never offered', () => {
    const catalogue = aCatalogue()
    const before = catalogue.types()
    catalogue.observe(aReport('CUSTOM', 8_000_000))
    catalogue.typeOf('CUSTOM')
    assert.equal(catalogue.types(), before)
    assert.equal(catalogue.sizeOf('CUSTOM'), undefined)
  })

  test('names that every object answers to are flavors like any other', () => {
    const catalogue = aCatalogue()
    for (const name of ['__proto__', 'constructor', 'toString', '']) {
      assert.equal(catalogue.typeOf(name).isServed, false)
      assert.equal(catalogue.typeOf(name).type.name, name)
    }
  })

  test('no more than a few are remembered', () => {
    const catalogue = aCatalogue()
    const kinds = Array.from(
      { length: 40 },
      (_, index) => catalogue.observe(aReport(`F${index}`, 8_000_000)).kind,
    )
    assert.deepEqual([kinds.indexOf('refused'), kinds.lastIndexOf('accepted')], [32, 31])
    assert.equal(
      catalogue.observe(aReport('F0', 7_000_000)).kind,
      'accepted',
      'what is known can still shrink',
    )
    assert.equal(catalogue.typeOf('F0').type.capacity['memory'], 7_000_000 * ki)
  })
})
