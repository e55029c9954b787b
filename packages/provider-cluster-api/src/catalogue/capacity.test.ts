import assert from 'node:assert/strict'
import { test } from 'node:test'
import { capacityAnnotations as annotations } from '../names.ts'
import { aParticipant, exclusionOf } from '../testing/deployments.test-support.ts'
import { factsIn } from './template-facts.ts'

const gi = 1024 ** 3

function capacityWith(own: Readonly<Record<string, string>>, template: object = {}) {
  return aParticipant({ annotations: own }, { facts: factsOf({ capacity: template }) }).capacity
}

function factsOf(status: unknown) {
  return factsIn({ apiVersion: 'v1', kind: 'Template', metadata: { name: 't' }, status })
}

test('CAP-9 annotations tell cpu, memory, ephemeral storage and GPUs', () => {
  assert.deepEqual(
    capacityWith({
      [annotations.cpu]: '1',
      [annotations.memory]: '16Gi',
      [annotations.ephemeralDisk]: '100Gi',
      [annotations.gpuCount]: '1',
      [annotations.gpuType]: 'nvidia.com/gpu',
    }),
    { cpu: 1000, memory: 16 * gi, 'ephemeral-storage': 100 * gi, 'nvidia.com/gpu': 1, pods: 110 },
  )
})

test('CAP-10 a number of GPUs without a type, a type without a number, and zero are none', () => {
  const none = { cpu: 4000, memory: 16 * gi, pods: 110 }
  assert.deepEqual(capacityWith({ [annotations.gpuCount]: '1' }), none)
  assert.deepEqual(capacityWith({ [annotations.gpuType]: 'nvidia.com/gpu' }), none)
  assert.deepEqual(
    capacityWith({ [annotations.gpuType]: 'nvidia.com/gpu', [annotations.gpuCount]: '0' }),
    none,
  )
})

for (const [annotation, text] of [
  [annotations.cpu, 'four'],
  [annotations.cpu, '-1'],
  [annotations.cpu, '0'],
  [annotations.memory, '16 Gi'],
  [annotations.memory, '1e300'],
  [annotations.ephemeralDisk, ''],
  [annotations.maxPods, '1.5'],
  [annotations.gpuCount, 'one'],
] as const)
  test(`CAP-79 ${annotation} of "${text}" excludes that MachineDeployment alone, with the fix`, () => {
    const because = exclusionOf({ annotations: { [annotation]: text } })
    assert.ok(because.startsWith(`annotation ${annotation} is "${text}", which is not a`), because)
    assert.match(because, /; write a quantity such as|; write one such as 8/)
  })

test('CAP-79 a gpu-type that is no resource is told', () => {
  const because = exclusionOf({
    annotations: { [annotations.gpuType]: 'a gpu', [annotations.gpuCount]: '1' },
  })
  assert.match(because, /gpu-type names no resource: .*; write one such as nvidia\.com\/gpu/)
})

test('CAP-80 nodes take 110 pods unless the annotation says otherwise, whatever the template says', () => {
  assert.equal(capacityWith({})['pods'], 110)
  assert.equal(capacityWith({}, { pods: '30' })['pods'], 110)
  assert.equal(capacityWith({ [annotations.maxPods]: '' })['pods'], 110)
  assert.equal(capacityWith({ [annotations.maxPods]: '0' })['pods'], 110)
  assert.equal(capacityWith({ [annotations.maxPods]: '58' })['pods'], 58)
})

test('CAP-81 annotations win over the template, resource by resource', () => {
  const facts = factsOf({ capacity: { cpu: '2', memory: '4Gi', 'nvidia.com/gpu': '2' } })
  const told = aParticipant(
    { annotations: { [annotations.cpu]: '4', [annotations.memory]: '8Gi' } },
    { facts },
  )
  assert.deepEqual(told.capacity, { cpu: 4000, memory: 8 * gi, 'nvidia.com/gpu': 2, pods: 110 })
})

test('a template may tell everything; what it says that is not a quantity is left out', () => {
  const facts = factsOf({ capacity: { cpu: '2', memory: '4Gi' } })
  assert.deepEqual(aParticipant({ bare: true }, { facts }).capacity, { cpu: 2000, memory: 4 * gi, pods: 110 })
  assert.deepEqual(factsOf({ capacity: { cpu: '2', memory: 'much', pods: '-3' } }).capacity, { cpu: 2000 })
  assert.deepEqual(factsOf({ capacity: { cpu: '2', memory: 4 } }).capacity, {})
  for (const status of [undefined, null, 'x', [], { capacity: 3 }, { capacity: null, nodeInfo: 7 }])
    assert.deepEqual(factsOf(status), { capacity: {} })
})

test('CAP-63 without cpu or without memory a MachineDeployment is excluded, and why its template was no help is told', () => {
  const facts = { capacity: { cpu: 1000 }, problem: 'its infrastructure template X a/b does not exist' }
  const because = exclusionOf({ annotations: { [annotations.cpu]: '4' }, bare: true }, facts)
  assert.match(
    because,
    /neither its infrastructure template nor annotation .*\/memory specifies how much memory/,
  )
  assert.match(because, /; its infrastructure template X a\/b does not exist$/)
})

test('nodeInfo tells architecture and operating system, empty ones tell nothing', () => {
  assert.deepEqual(factsOf({ nodeInfo: { architecture: 'arm64', operatingSystem: 'linux' } }), {
    capacity: {},
    architecture: 'arm64',
    operatingSystem: 'linux',
  })
  assert.deepEqual(factsOf({ nodeInfo: { architecture: '', operatingSystem: 'a b' } }), { capacity: {} })
})
