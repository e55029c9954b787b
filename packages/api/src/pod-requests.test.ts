import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Container, Pod, PodSpec } from './objects.ts'
import { withRequestsFromLimits } from './pod-defaults.ts'
import { podRequests, requestsOf } from './pod-requests.ts'
import { resizeCases } from './scheduler-cases.test-support.ts'

const asking = (cpu: string, name = 'app'): Container => ({ name, resources: { requests: { cpu } } })
const sidecar = (cpu: string): Container => ({ ...asking(cpu, 'sidecar'), restartPolicy: 'Always' })
const cpuOf = (spec: PodSpec, status?: Pod['status']) => podRequests(spec, status)['cpu']

describe('containers', () => {
  test('SCH-53 an init container that needs more than the containers decides', () => {
    assert.deepEqual(podRequests({ initContainers: [asking('3', 'init')], containers: [asking('1')] }), {
      cpu: 3000,
      pods: 1,
    })
  })

  test('SCH-54 a sidecar runs beside later init containers and beside the containers', () => {
    const initContainers = [sidecar('2'), asking('3', 'init')]
    assert.equal(cpuOf({ initContainers, containers: [asking('1')] }), 5000)
    assert.equal(cpuOf({ initContainers, containers: [asking('4')] }), 6000)
  })

  test('SCH-55 an init container ahead of a sidecar runs alone', () => {
    const initContainers = [asking('3', 'init'), sidecar('2')]
    assert.equal(cpuOf({ initContainers, containers: [asking('1')] }), 3000)
  })

  test('SCH-56 pod-level requests replace the sum, resource by resource, before the overhead', () => {
    const containers = [
      { name: 'a', resources: { requests: { cpu: '1', memory: '1Gi', 'example.com/gpu': '1' } } },
      asking('1', 'b'),
    ]
    const resources = { requests: { cpu: '5', 'example.com/gpu': '9' } }
    assert.deepEqual(podRequests({ containers, resources, overhead: { cpu: '250m', memory: '1Ki' } }), {
      cpu: 5250,
      memory: 1024 ** 3 + 1024,
      'example.com/gpu': 1,
      pods: 1,
    })
  })

  test('limits stand in for requests that a template leaves out', () => {
    const spec = withRequestsFromLimits({
      containers: [{ name: 'a', resources: { limits: { cpu: '2', memory: '1' }, requests: { cpu: '1' } } }],
    })
    assert.deepEqual(podRequests(spec), { cpu: 1000, memory: 1, pods: 1 })
  })
})

describe('in-place resize', () => {
  const resizing = (status: { allocated?: string; requests?: string }, reason?: string): Pod['status'] => {
    const { allocated, requests } = status
    const containerStatus = {
      name: 'app',
      ...(allocated !== undefined && { allocatedResources: { cpu: allocated } }),
      ...(requests !== undefined && { resources: { requests: { cpu: requests } } }),
    }
    return {
      containerStatuses: [{ name: 'other', resources: { requests: { cpu: '64' } } }, containerStatus],
      ...(reason !== undefined && { conditions: [{ type: 'PodResizePending', status: 'True', reason }] }),
    }
  }
  const spec: PodSpec = { containers: [asking('2')] }

  test('SCH-57 what a container was promised counts if it is more than it asks for', () => {
    assert.equal(cpuOf(spec, resizing({ allocated: '3', requests: '1' })), 3000)
    assert.equal(cpuOf(spec, resizing({ allocated: '1', requests: '4' })), 4000)
    assert.equal(cpuOf(spec, resizing({ allocated: '1', requests: '1' })), 2000)
    assert.equal(cpuOf(spec, resizing({ allocated: '3' })), 2000)
  })

  test('once a resize is refused for good, the spec no longer counts', () => {
    assert.equal(cpuOf(spec, resizing({ allocated: '1', requests: '1' }, 'Infeasible')), 1000)
    assert.equal(cpuOf(spec, resizing({ allocated: '1', requests: '1' }, 'Deferred')), 2000)
    assert.equal(cpuOf(spec, resizing({}, 'Infeasible')), 2000)
  })

  test('sidecars are resized, other init containers are not', () => {
    const status = (name: string): Pod['status'] => ({
      initContainerStatuses: [{ name, resources: { requests: { cpu: '8' } } }],
    })
    assert.equal(cpuOf({ initContainers: [sidecar('1')], ...spec }, status('sidecar')), 10_000)
    assert.equal(cpuOf({ initContainers: [asking('1', 'init')], ...spec }, status('init')), 2000)
  })
})

test('VER-38 VER-39 VER-40 pods that are resized count as kube-scheduler counts them, by its version', () => {
  for (const { about, spec, status, cpu } of resizeCases)
    for (const rule of ['sumOfMaxima', 'maximumOfSums'] as const) {
      assert.equal(podRequests(spec, status, rule)['cpu'], cpu[rule], `${about}, ${rule}`)
      assert.equal(requestsOf({ spec, status }, rule)['cpu'], cpu[rule], `${about}, ${rule}, memoized`)
    }
})

test('amounts below one unit are never lost in a sum', () => {
  const many = (quantities: Readonly<Record<string, string>>): PodSpec => ({
    containers: Array.from({ length: 20 }, (_, i) => ({
      name: String(i),
      resources: { requests: quantities },
    })),
  })
  // Exactly 2 thousandths of a core and 10 bytes; each container counts as a whole unit.
  assert.deepEqual(podRequests(many({ cpu: '100u', memory: '500m' })), { cpu: 20, memory: 20, pods: 1 })
  assert.deepEqual(podRequests(many({ cpu: '0.5m', memory: '0' })), { cpu: 20, memory: 0, pods: 1 })
  assert.throws(() => podRequests(many({ cpu: 'much' })), RangeError)
})

test('what pods share is worked out once, and anew where kubelets say what containers have', () => {
  const spec: PodSpec = { containers: [asking('1')] }
  assert.equal(requestsOf({ spec }), requestsOf({ spec: { ...spec } }))
  assert.deepEqual(requestsOf({ spec: { ...spec, overhead: { cpu: '1' } } }), { cpu: 2000, pods: 1 })
  const containerStatuses = [{ name: 'app', resources: { requests: { cpu: '3' } } }]
  assert.deepEqual(requestsOf({ spec, status: { containerStatuses } }), {
    cpu: 3000,
    pods: 1,
  })
})

test('scoring assumes an amount for each container that asks for nothing', () => {
  const assumed = { cpu: 100, memory: 200 }
  const spec: PodSpec = { containers: [asking('1'), { name: 'silent' }], initContainers: [sidecar('2')] }
  assert.deepEqual(podRequests(spec, undefined, 'sumOfMaxima', assumed), { cpu: 3100, memory: 600, pods: 1 })
})
