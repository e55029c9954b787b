import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CapacityBuffer, PodSpec } from '@tenon/api'
import { bufferReplicas } from './buffer-templates.ts'

const spec: PodSpec = { containers: [{ name: 'app', resources: { requests: { cpu: '1', memory: '1Gi' } } }] }
const of = (size: CapacityBuffer['spec'], scale?: number) => bufferReplicas(size, spec, scale)

describe('replicas of a CapacityBuffer', () => {
  test('BUF-8 a percentage rounds up, to at least 1 of anything', () => {
    assert.equal(of({ percentage: 20 }, 10), 2)
    assert.equal(of({ percentage: 10 }, 1), 1)
    assert.equal(of({ percentage: 10 }, 0), 0)
    assert.equal(of({ percentage: 250 }, 2), 5)
  })

  test('BUF-9 API-100 the larger of replicas and percentage counts, and limits cap it', () => {
    assert.equal(of({ replicas: 5, percentage: 80 }, 10), 8)
    assert.equal(of({ replicas: 5, percentage: 80, limits: { cpu: '4' } }, 10), 4)
    assert.equal(of({ replicas: 3, percentage: 50, limits: { cpu: '4' } }, 10), 4)
    assert.equal(of({ replicas: 3, percentage: 50 }, 10), 5)
  })

  test('BUF-10 limits alone are the number; those of what no pod asks for are none', () => {
    assert.equal(of({ limits: { cpu: '5' } }), 5)
    assert.equal(of({ limits: { cpu: '5', memory: '3Gi' } }), 3)
    assert.equal(of({ limits: { 'nvidia.com/gpu': '5' } }), 0)
    assert.equal(of({ replicas: 2, limits: { 'nvidia.com/gpu': '5' } }), 2)
    assert.equal(of({}, 10), 0, 'no size at all')
  })

  test('BUF-11 limits hold whole pods', () => {
    assert.equal(of({ limits: { cpu: '2500m' } }), 2)
    assert.equal(of({ limits: { cpu: '500m' } }), 0)
    assert.equal(of({ replicas: 3, limits: { cpu: '500m' } }), 0)
  })

  test('BUF-15 what restartable init containers ask for comes on top', () => {
    const sidecar = { name: 'proxy', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } }
    assert.equal(
      bufferReplicas({ limits: { cpu: '4' } }, { ...spec, initContainers: [sidecar] }, undefined),
      2,
    )
    const init = { name: 'init', resources: { requests: { cpu: '2' } } }
    assert.equal(bufferReplicas({ limits: { cpu: '4' } }, { ...spec, initContainers: [init] }, undefined), 2)
    const overhead = { cpu: '1' }
    assert.equal(bufferReplicas({ limits: { cpu: '4' } }, { ...spec, overhead }, undefined), 2)
  })

  test('BUF-113 API-109 a workload without replicas gives no size, a percentage of 0 is one', () => {
    assert.equal(of({ percentage: 50, limits: { cpu: '4' } }, 0), 4)
    assert.equal(of({ percentage: 50 }, 0), 0)
    assert.equal(of({ percentage: 50, limits: { cpu: '4' } }, 10), 4)
    assert.equal(of({ percentage: 0, limits: { cpu: '4' } }, 10), 0)
  })

  test('a size never exceeds what the status can hold', () => {
    assert.equal(of({ percentage: 2_000_000_000 }, 2_000_000_000), 2_147_483_647)
    assert.equal(of({ limits: { cpu: '9e18' } }), 2_147_483_647)
  })
})
