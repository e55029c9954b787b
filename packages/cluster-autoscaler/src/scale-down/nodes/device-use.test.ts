import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResourceClaim, ResourceSlice } from '@tenon/api'
import { deviceUse } from './device-use.ts'

interface SliceFields {
  readonly node?: string
  readonly driver?: string
  readonly pool?: string
  readonly generation?: number
}

function aSlice(devices: readonly string[], fields: SliceFields = {}): ResourceSlice {
  const { node, driver = 'gpu.example.com', pool = 'pool', generation = 1 } = fields
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: devices.join('-') },
    spec: {
      driver,
      pool: { name: pool, generation, resourceSliceCount: 1 },
      devices: devices.map((name) => ({ name })),
      ...(node !== undefined && { nodeName: node }),
    },
  }
}

function aClaim(
  device: string,
  fields: SliceFields & { readonly adminAccess?: boolean } = {},
): ResourceClaim {
  const { driver = 'gpu.example.com', pool = 'pool', adminAccess } = fields
  const result = { driver, pool, device, ...(adminAccess !== undefined && { adminAccess }) }
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: device, namespace: 'default' },
    status: { allocation: { devices: { results: [result] } } },
  }
}

const ratioOf = (slices: readonly ResourceSlice[], claims: readonly ResourceClaim[]) =>
  deviceUse(slices, claims).get('n')?.ratio

test('devices that claims hold are in use, each once', () => {
  const slices = [aSlice(['a', 'b'], { node: 'n' }), aSlice(['c', 'd'], { node: 'n' })]
  assert.equal(ratioOf(slices, []), 0)
  assert.equal(ratioOf(slices, [aClaim('a'), aClaim('a'), aClaim('c')]), 0.5)
  assert.equal(ratioOf(slices, [aClaim('a', { adminAccess: true })]), 0)
  assert.equal(ratioOf(slices, [aClaim('a', { driver: 'other' }), aClaim('elsewhere')]), 0)
})

test('the pool with the largest share in use counts', () => {
  const slices = [aSlice(['a', 'b'], { node: 'n' }), aSlice(['x'], { node: 'n', driver: 'nic.example.com' })]
  const use = deviceUse(slices, [aClaim('x', { driver: 'nic.example.com' })]).get('n')
  assert.deepEqual(use, { driver: 'nic.example.com', pool: 'pool', ratio: 1 })
})

test('slices of an older generation no longer count, whatever their order', () => {
  const old = aSlice(['a', 'b', 'c'], { node: 'n', generation: 1 })
  const now = aSlice(['d'], { node: 'n', generation: 2 })
  for (const slices of [
    [old, now],
    [now, old],
  ])
    assert.equal(ratioOf(slices, [aClaim('d')]), 1)
})

test('pools that nodes share, and pools without devices, are of no node', () => {
  assert.equal(deviceUse([aSlice(['a']), aSlice([], { node: 'n' })], [aClaim('a')]).size, 0)
})
