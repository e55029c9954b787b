import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Resources, setOwn } from '@tenon/api'
import * as fc from 'fast-check'
import { isSameSize, judgeReport, type NodeReport, type NodeSize, smallerSize } from './reports.ts'

const ki = 1024
const expected: NodeSize = {
  capacity: { cpu: 12_000, memory: 22_896_304 * ki, 'ephemeral-storage': 40_971_488 * ki, pods: 110 },
  allocatable: { cpu: 12_000, memory: 22_793_904 * ki, 'ephemeral-storage': 37_759_323_279, pods: 110 },
}

function aReport(changes: Partial<NodeReport> = {}): NodeReport {
  return {
    nodeName: 'pool-a-node0',
    flavor: 'L',
    nodeGroup: { name: 'pool-a', flavor: 'L' },
    role: 'worker',
    ...expected,
    ...changes,
  }
}

/** A report in which amounts differ; undefined takes a resource away. */
function changed(
  capacity: Readonly<Record<string, number | undefined>>,
  allocatable: Readonly<Record<string, number | undefined>> = capacity,
): NodeReport {
  const withChanges = (
    amounts: Resources,
    changes: Readonly<Record<string, number | undefined>>,
  ): Resources => {
    const all = Object.entries({ ...amounts, ...changes })
    return Object.fromEntries(all.filter((entry): entry is [string, number] => entry[1] !== undefined))
  }
  return aReport({
    capacity: withChanges(expected.capacity, capacity),
    allocatable: withChanges(expected.allocatable, allocatable),
  })
}

function refusal(report: NodeReport, against: NodeSize | undefined = expected): string {
  const verdict = judgeReport(report, against)
  assert.equal(verdict.kind, 'refused')
  return verdict.kind === 'refused' ? verdict.because : ''
}

test('CLV-40 a worker of a NodeGroup of ours with the size of its flavor is believed', () => {
  assert.deepEqual(judgeReport(aReport(), expected), { kind: 'accepted' })
  const measured = changed({ memory: 24_117_248 * ki }, { memory: 24_014_848 * ki })
  assert.deepEqual(judgeReport(measured, expected), { kind: 'accepted' })
  for (const nodeName of ['pool-a-node1', 'pool-a-node15'])
    assert.deepEqual(judgeReport(aReport({ nodeName }), expected), { kind: 'accepted' })
})

test('CLV-41 a node without cpu or memory has not reported yet', () => {
  for (const report of [
    changed({ cpu: 0 }),
    changed({ memory: 0 }),
    changed({ cpu: undefined }),
    changed({ memory: undefined }),
    aReport({ capacity: {}, allocatable: {} }),
  ])
    assert.deepEqual(judgeReport(report, expected), { kind: 'ignored' })
})

test('CLV-65 nodes of the control plane and of others tell nothing', () => {
  for (const report of [
    aReport({ role: 'control-plane' }),
    aReport({ role: '' }),
    aReport({ nodeGroup: undefined }),
    // Not a word about its wrong size either.
    aReport({ nodeGroup: undefined, capacity: { cpu: 1, memory: 1 } }),
  ])
    assert.deepEqual(judgeReport(report, expected), { kind: 'ignored' })
})

test('a node with a name that the platform does not give is refused', () => {
  for (const nodeName of [
    'pool-a',
    'pool-a-node',
    'pool-a-node00',
    'pool-a-node0x',
    'pool-b-node0',
    'xpool-a-node0',
    'pool-a-node-1',
  ])
    assert.equal(
      refusal(aReport({ nodeName })),
      'nodes of NodeGroup pool-a are called pool-a-node0 and so on',
      nodeName,
    )
})

test('a node of another flavor than its NodeGroup is refused', () => {
  assert.equal(
    refusal(aReport({ nodeGroup: { name: 'pool-a', flavor: 'XL' } })),
    'NodeGroup pool-a has flavor XL, the node L',
  )
})

test('amounts that contradict each other are refused', () => {
  assert.equal(
    refusal(changed({ 'example.com/gpu': 1 }, {})),
    'its capacity has example.com/gpu, its allocatable has not',
  )
  assert.equal(
    refusal(changed({}, { 'example.com/gpu': 1 })),
    'its allocatable has example.com/gpu, its capacity has not',
  )
  assert.equal(
    refusal(changed({}, { memory: 22_896_305 * ki })),
    'its allocatable memory of 22896305Ki is more than its capacity of 22896304Ki',
  )
  for (const amount of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.equal(refusal(changed({ 'example.com/gpu': amount })), 'its example.com/gpu is not a quantity')
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`example.com/${index}`, 1]))
  assert.equal(refusal(changed(many)), 'it has more than 64 resources')
  const proto: Record<string, number> = { ...expected.capacity }
  setOwn(proto, '__proto__', 1)
  assert.equal(refusal(aReport({ capacity: proto })), 'its capacity has __proto__, its allocatable has not')
})

test('a node of another size than its flavor is refused', () => {
  assert.equal(refusal(changed({ cpu: 11_000 })), 'its cpu of 11 is not the 12 of the catalogue')
  assert.match(
    refusal(changed({}, { cpu: 10_000 })),
    /^its allocatable of cpu, 10, is more than a tenth from the 12/,
  )
  assert.match(
    refusal(changed({ memory: 20_000_000 * ki })),
    /^its capacity of memory, 20000000Ki, is more than a tenth from the 22896304Ki of the catalogue$/,
  )
  assert.match(
    refusal(changed({}, { memory: 20_000_000 * ki })),
    /^its allocatable of memory, 20000000Ki, is/,
  )
  assert.match(
    refusal(changed({ pods: 250 })),
    /^its capacity of pods, 250, is more than a tenth from the 110/,
  )
  for (const resource of ['ephemeral-storage', 'pods'])
    assert.equal(refusal(changed({ [resource]: undefined })), `it does not report its ${resource}`)
  for (const pods of [99, 121])
    assert.deepEqual(judgeReport(changed({ pods }), expected), { kind: 'accepted' })
  for (const pods of [98, 122]) assert.match(refusal(changed({ pods })), /is more than a tenth from/)
})

test('CLV-35 of a flavor that is not sold there is nothing to compare with', () => {
  const report = aReport({
    flavor: 'CUSTOM',
    nodeGroup: { name: 'pool-a', flavor: 'CUSTOM' },
    capacity: { cpu: 6000, memory: 1 },
    allocatable: { cpu: 6000, memory: 1 },
  })
  assert.deepEqual(judgeReport(report, undefined), { kind: 'accepted' })
  assert.match(refusal({ ...report, nodeName: 'x' }, undefined), /^nodes of NodeGroup/)
})

const resources = ['cpu', 'memory', 'pods', 'example.com/gpu', '__proto__', 'constructor']
const anySize: fc.Arbitrary<NodeSize> = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...resources), fc.nat({ max: 5 }), fc.nat({ max: 5 })), {
    selector: ([resource]) => resource,
  })
  .map((amounts) => ({
    capacity: Object.fromEntries(amounts.map(([resource, a, b]) => [resource, Math.max(a, b)])),
    allocatable: Object.fromEntries(amounts.map(([resource, a, b]) => [resource, Math.min(a, b)])),
  }))

test('the smallest size does not depend on which node is seen first, or how often', () => {
  fc.assert(
    fc.property(anySize, anySize, anySize, (a, b, c) => {
      const all = smallerSize(smallerSize(a, b), c)
      for (const other of [
        smallerSize(a, smallerSize(b, c)),
        smallerSize(smallerSize(c, a), b),
        smallerSize(all, b),
      ])
        assert.ok(isSameSize(all, other))
      for (const each of [a, b, c])
        for (const [resource, amount] of Object.entries(all.capacity))
          assert.ok(amount <= (new Map(Object.entries(each.capacity)).get(resource) ?? -1), resource)
      const capacity = new Map(Object.entries(all.capacity))
      for (const [resource, amount] of Object.entries(all.allocatable))
        assert.ok(
          amount <= (capacity.get(resource) ?? -1),
          `${resource} is not below zero after what is kept back`,
        )
    }),
  )
})
