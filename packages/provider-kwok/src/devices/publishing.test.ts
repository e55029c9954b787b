import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Device, type ResourceSlice, type ResourceSliceTemplate, slicesOf } from '@tenon/api'
import { readCatalogue } from '../catalogue-file.ts'
import { sliceChanges } from './publishing.ts'

const driver = 'gpu.example.com'
const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', uid: 'uid-1' } }

function many(count: number): readonly Device[] {
  return Array.from({ length: count }, (_, index) => ({ name: `gpu-${index}` }))
}

const pool = (name: string, devices: readonly Device[]): ResourceSliceTemplate => ({
  driver,
  pool: name,
  devices,
})
const generations = (slices: readonly ResourceSlice[]) => slices.map(({ spec }) => spec.pool.generation)

test('a pool is published once, and stays as it is', () => {
  const wanted = slicesOf([pool('gpus', many(200))], node)
  const { gone, made } = sliceChanges(wanted, [])
  assert.deepEqual([gone, generations(made)], [[], [1, 1]])
  assert.deepEqual(sliceChanges(wanted, made), { gone: [], made: [] })
})

test('BUF-131 when one of two slices of a pool changes both end on the same new generation', () => {
  const before = sliceChanges(slicesOf([pool('gpus', many(200)), pool('nics', many(2))], node), []).made
  const changed = [...many(199), { name: 'gpu-199', attributes: { model: { string: 'new' } } }]
  const { gone, made } = sliceChanges(slicesOf([pool('gpus', changed), pool('nics', many(2))], node), before)
  assert.deepEqual(
    gone.map(({ metadata }) => metadata.name),
    ['node-1-gpu.example.com-gpus-0', 'node-1-gpu.example.com-gpus-1'],
  )
  assert.deepEqual(generations(made), [2, 2])
  assert.deepEqual(
    made.map(({ spec }) => spec.pool.resourceSliceCount),
    [2, 2],
  )
})

test('BUF-112 slices of a pool that is no longer wanted go, and a smaller pool is a new generation', () => {
  const before = sliceChanges(slicesOf([pool('gpus', many(200)), pool('nics', many(2))], node), []).made
  const { gone, made } = sliceChanges(slicesOf([pool('gpus', many(1))], node), before)
  assert.equal(gone.length, 3)
  assert.deepEqual(generations(made), [2])
})

const item = (devices: object) => ({
  name: 'gpu.large',
  architecture: 'amd64',
  operatingSystems: ['linux'],
  resources: { cpu: '8', memory: '32Gi' },
  offerings: [{ zone: 'zone-a', capacityType: 'on-demand', price: 1 }],
  ...devices,
})

test('a file tells the devices of a type', () => {
  const resourceSliceTemplates = [
    {
      driver,
      pool: 'gpus',
      devices: [
        {
          name: 'gpu-0',
          attributes: { model: { string: 'a100' }, index: { int: 0 } },
          capacity: { memory: { value: '80Gi' } },
          consumesCounters: [{ counterSet: 'card', counters: { memory: { value: '40Gi' } } }],
        },
      ],
      sharedCounters: [{ name: 'card', counters: { memory: { value: '80Gi' } } }],
    },
  ]
  const attributeBindings = [
    { attribute: 'example.com/root', devices: [{ driver, pool: 'gpus', device: 'gpu-0' }] },
  ]
  const { types, problems } = readCatalogue(
    JSON.stringify([item({ resourceSliceTemplates, attributeBindings })]),
  )
  assert.deepEqual(problems, [])
  assert.deepEqual(types[0]?.resourceSliceTemplates, resourceSliceTemplates)
  assert.deepEqual(types[0].attributeBindings, attributeBindings)
})

test('a type with devices that cannot be read is skipped, with the field', () => {
  const withDevice = (device: object) => ({
    resourceSliceTemplates: [{ driver, pool: 'gpus', devices: [device] }],
  })
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ resourceSliceTemplates: {} }, /resourceSliceTemplates: give an array of objects/],
    [
      { resourceSliceTemplates: [{ driver: 'GPU', pool: 'gpus', devices: [] }] },
      /\[0\]\.driver: give a DNS name/,
    ],
    [withDevice({ name: 'GPU 0' }), /devices\[0\]\.name: give a name/],
    [withDevice({ name: 'g', attributes: { model: 'a100' } }), /attributes\.model: give one of int/],
    [
      withDevice({ name: 'g', attributes: { constructor: { text: 'x' } } }),
      /attributes\.constructor: give one of/,
    ],
    [
      withDevice({ name: 'g', capacity: { memory: { value: 'much' } } }),
      /capacity\.memory\.value: give a quantity/,
    ],
    [withDevice({ name: 'g', consumesCounters: [{ counters: {} }] }), /counterSet: give the name of a set/],
    [{ attributeBindings: [{ attribute: 'a', devices: [{ driver }] }] }, /devices\[0\]\.pool: give a text/],
  ]
  for (const [devices, problem] of cases) {
    const { types, problems } = readCatalogue(JSON.stringify([item(devices), { ...item({}), name: 'plain' }]))
    assert.deepEqual(
      types.map(({ name }) => name),
      ['plain'],
    )
    assert.match(problems.join(), problem)
  }
})
