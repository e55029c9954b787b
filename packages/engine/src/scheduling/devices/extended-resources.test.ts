/** Extended resources that devices serve (devices.md 3.22). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Container,
  type DeviceClass,
  extendedResourceClasses,
  extendedResourceRequests,
  type InstanceType,
  labels,
  type Pod,
  type PodSpec,
} from '@tenon/api'
import { extendedResourceCases } from '@tenon/api/scheduler-cases'
import { renderPodReason } from '../../reasons/reasons.ts'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { aNode, aPod, aPool, aPoolInput, aType, placedOn } from '../../testing/builders.test-support.ts'
import {
  aClaim,
  aDeviceInput,
  aDeviceType,
  anAllocation,
  aSlice,
  type ClaimedPods,
  driver,
  gpuClass,
  gpus,
} from '../../testing/device-builders.test-support.ts'
import { schedule } from '../schedule.ts'

const resource = 'example.com/gpu'

function aClass(name: string, created: string, extendedResourceName = resource): DeviceClass {
  return {
    ...gpuClass,
    metadata: { name, creationTimestamp: created },
    spec: { ...gpuClass.spec, extendedResourceName },
  }
}

/** A pod that requests `count` of the resource in one container. */
const asking = (count: number, spec: Partial<PodSpec> = {}): Pod =>
  aPod({ cpu: '100m', [resource]: String(count) }, spec)

/** A type whose nodes have a device plugin for the resource. */
function aPluginType(name: string, cpu: number, count: number): InstanceType {
  const type = aType(name, cpu, cpu * 4)
  return { ...type, capacity: { ...type.capacity, [resource]: count } }
}

const oneGpu = aDeviceType('one-gpu', 4, gpus(1))
const twoGpus = aDeviceType('two-gpus', 8, gpus(2))
const eightGpus = aDeviceType('eight-gpus', 16, gpus(8))
const noGpu = aType('no-gpu', 2, 8)

function decided(
  pods: readonly Pod[],
  types: readonly InstanceType[] = [noGpu, oneGpu, twoGpus, eightGpus],
  overrides: Partial<SchedulingInput> = {},
  claimed: Partial<ClaimedPods> = {},
): SchedulingResult {
  const { devices, ...input } = aDeviceInput(
    { pods: pods.map((pod) => [pod]), claims: {}, ...claimed },
    { pools: [aPoolInput(aPool(), types)], ...overrides },
  )
  assert.ok(devices !== undefined)
  const classes = [aClass('gpu', '2026-01-01T00:00:00Z')]
  const extendedResources = extendedResourceClasses(classes, false)
  return schedule({ ...input, devices: { ...devices, classes, extendedResources } })
}

const typesOf = ({ claims }: SchedulingResult) => claims.map(({ instanceTypes }) => instanceTypes)
const whys = ({ failures }: SchedulingResult) => failures.map(({ reason }) => renderPodReason(reason))

describe('which class serves a resource', () => {
  const old = '2026-01-01T00:00:00Z'
  const young = '2026-02-01T00:00:00Z'

  test('VER-14 of two classes of one name the newer serves it', () => {
    const classes = [aClass('a', old), aClass('b', young)]
    assert.equal(extendedResourceClasses(classes, false).get(resource), 'b')
    assert.equal(extendedResourceClasses(classes.toReversed(), false).get(resource), 'b')
  })

  test('VER-14 of two equally old classes the one with the lower name serves it', () => {
    const classes = [aClass('b', old), aClass('a', old)]
    assert.equal(extendedResourceClasses(classes, false).get(resource), 'a')
  })

  test('VER-12 a class serves its implicit name where there are implicit names', () => {
    const implicit = 'deviceclass.resource.kubernetes.io/a'
    assert.equal(extendedResourceClasses([aClass('a', old)], true).get(implicit), 'a')
    assert.equal(extendedResourceClasses([aClass('a', old)], false).has(implicit), false)
  })
})

describe('devices of containers', () => {
  const container = (name: string, count: number, more: Partial<Container> = {}): Container => ({
    name,
    resources: { requests: { cpu: '100m', [resource]: String(count) } },
    ...more,
  })
  const sidecar = container('sidecar', 1, { restartPolicy: 'Always' })
  const two = [container('a', 1), container('b', 2)]
  const countsOf = (spec: Pick<PodSpec, 'containers' | 'initContainers'>) =>
    extendedResourceRequests(spec, new Map([[resource, 'gpu']])).requests.map(({ name, exactly }) => [
      name,
      exactly?.count,
    ])

  test('VER-15 containers add up, and an init container adds what they lack', () => {
    assert.deepEqual(countsOf({ containers: two, initContainers: [container('init', 4)] }), [
      ['container-0-request-1', 1],
      ['container-1-request-1', 1],
      ['container-2-request-1', 2],
    ])
  })

  test('VER-15 a sidecar before the init container adds its own', () => {
    assert.deepEqual(countsOf({ containers: two, initContainers: [sidecar, container('init', 4)] }), [
      ['container-0-request-1', 1],
      ['container-1-request-1', 1],
      ['container-2-request-1', 1],
      ['container-3-request-1', 2],
    ])
  })

  test('VER-15 of several init containers the largest surplus counts', () => {
    const init = [container('small', 4), container('large', 6), container('none', 2)]
    const counts = countsOf({ containers: two, initContainers: init }).map(([, count]) => count)
    assert.deepEqual(counts, [3, 1, 2])
  })

  test('VER-15 a node needs as many devices as the containers together', () => {
    const of = (initContainers: readonly Container[], devices: number) =>
      decided([aPod({}, { containers: two, initContainers })], [aDeviceType('gpus', 4, gpus(devices))])
    assert.equal(of([container('init', 4)], 4).claims.length, 1)
    assert.equal(of([container('init', 4)], 3).claims.length, 0)
    assert.equal(of([sidecar, container('init', 4)], 5).claims.length, 1)
    assert.equal(of([sidecar, container('init', 4)], 4).claims.length, 0)
  })

  test('each container is told the requests that it uses', () => {
    const { mappings } = extendedResourceRequests(
      { containers: two, initContainers: [container('init', 2)] },
      new Map([[resource, 'gpu']]),
    )
    assert.deepEqual(
      mappings.map(({ containerName, requestName }) => [containerName, requestName]),
      [
        ['init', 'container-1-request-1'],
        ['init', 'container-2-request-1'],
        ['a', 'container-1-request-1'],
        ['b', 'container-2-request-1'],
      ],
    )
  })
})

describe('new nodes', () => {
  test('VER-10 types with devices are launched, with their driver, and the resource is not requested', () => {
    const result = decided([asking(1)])
    assert.deepEqual(typesOf(result), [['one-gpu', 'two-gpus', 'eight-gpus']])
    assert.deepEqual(result.claims[0]?.deviceDrivers, [driver])
    assert.equal(Object.hasOwn(result.claims[0]?.requests ?? {}, resource), false)
  })

  test('devices of one node are not given twice', () => {
    const apart = decided([asking(1), asking(1)], [oneGpu])
    assert.deepEqual(typesOf(apart), [['one-gpu'], ['one-gpu']])
    assert.deepEqual(typesOf(decided([asking(1), asking(1)], [twoGpus])), [['two-gpus']])
  })

  test('VER-11 a type with plugin capacity is allowed without a driver', () => {
    const result = decided([asking(1)], [noGpu, aPluginType('plugin', 4, 1)])
    assert.deepEqual(typesOf(result), [['plugin']])
    assert.deepEqual(result.claims[0]?.deviceDrivers, [])
    assert.equal(result.claims[0]?.requests[resource], 1)
  })

  test('VER-11 of a plugin and devices the cheaper wins', () => {
    const devices = decided([asking(1)], [oneGpu, aPluginType('plugin', 8, 1)])
    assert.deepEqual([typesOf(devices)[0], devices.claims[0]?.deviceDrivers], [['one-gpu'], [driver]])
    const plugin = decided([asking(1)], [twoGpus, aPluginType('plugin', 4, 1)])
    assert.deepEqual([typesOf(plugin)[0], plugin.claims[0]?.deviceDrivers], [['plugin'], []])
  })

  test('VER-11 plugin capacity is a limit, although the type has devices', () => {
    const both = { ...eightGpus, capacity: { ...eightGpus.capacity, [resource]: 1 } }
    assert.equal(decided([asking(2)], [both]).claims.length, 0)
  })

  test('VER-12 a resource without a class is not served', () => {
    const name = 'deviceclass.resource.kubernetes.io/gpu'
    const result = decided([aPod({ cpu: '100m', [name]: '1' })])
    assert.equal(result.claims.length, 0)
    assert.match(whys(result)[0] ?? '', /deviceclass\.resource\.kubernetes\.io\/gpu/)
  })

  test('VER-20 the reason for no launch names the resource', () => {
    const result = decided([asking(1)], [noGpu])
    assert.equal(result.claims.length, 0)
    assert.match(
      whys(result)[0] ?? '',
      /^example\.com\/gpu, which devices serve: request container-0-request-1: no node.* DeviceClass gpu/,
    )
  })

  test('VER-16 a pod gets its resource and its claim from one node, or nothing', () => {
    const pod = asking(1, { resourceClaims: [{ name: 'devices', resourceClaimName: 'one' }] })
    const claimed: Partial<ClaimedPods> = { pods: [[pod, 'one']], claims: { one: aClaim() } }
    assert.deepEqual(typesOf(decided([pod], undefined, {}, claimed)), [['two-gpus', 'eight-gpus']])
    assert.equal(decided([pod], [oneGpu], {}, claimed).claims.length, 0)
  })
})

describe('nodes that exist', () => {
  const slices = [aSlice('node-1', gpus(2), { nodeName: 'node-1' })]
  const node = aNode('node-1', { labels: { [labels.instanceType]: 'two-gpus' } })
  const holding = (available: Readonly<Record<string, number>>) =>
    ({ nodes: [{ ...node, available: { ...node.available, ...available } }], pools: [] }) as const

  for (const { title, allocatable = 0, used, devices, requested, fits } of extendedResourceCases)
    test(`VER-13 ${title}`, () => {
      // A node without the resource does not report it.
      const cluster = holding(allocatable === 0 ? {} : { [resource]: allocatable - used })
      const own = [aSlice('node-1', gpus(devices), { nodeName: 'node-1' })]
      const result = decided([asking(requested)], [], cluster, { slices: own })
      assert.deepEqual(Object.values(placedOn(result)), fits ? ['node-1'] : [])
    })

  test('VER-13 a node that starts has the devices of its type', () => {
    const nodes = [{ ...node, initialized: false }]
    const result = decided([asking(1), asking(1), asking(1)], [twoGpus], { nodes })
    assert.deepEqual([result.placements.length, result.claims.length], [2, 1])
  })

  test('VER-18 others still fit a node whose pod has the resource from devices', () => {
    const allocations = [anAllocation('special', ['uid-other'], { pool: 'node-1', device: 'gpu-0' })]
    const result = decided([aPod(), asking(1), asking(1)], [], holding({}), { slices, allocations })
    assert.equal(result.placements.length, 2)
    assert.equal(result.failures.length, 1)
  })

  test('a pod whose claim was created before it was bound goes where its devices are', () => {
    const pod = asking(1)
    const uid = pod.metadata.uid ?? ''
    const at = (name: string) => ({
      ...aClaim(),
      status: {
        allocation: {
          nodeSelector: {
            nodeSelectorTerms: [
              { matchFields: [{ key: 'metadata.name', operator: 'In' as const, values: [name] }] },
            ],
          },
        },
      },
    })
    const placedWith = (name: string) =>
      decided(
        [pod],
        [oneGpu],
        { nodes: [node] },
        {
          pods: [[pod, 'special']],
          claims: { special: at(name) },
          slices,
          allocations: [anAllocation('special', [uid], { pool: name, device: 'gpu-0' })],
          withExtendedClaim: [uid],
        },
      )
    assert.deepEqual(Object.values(placedOn(placedWith('node-1'))), ['node-1'])
    const elsewhere = placedWith('gone')
    assert.deepEqual([elsewhere.placements.length, elsewhere.claims.length], [0, 0])
  })

  test('VER-19 a pod that moves gives back its devices, and new ones are searched for it', () => {
    const pod = asking(2)
    const allocations = [
      anAllocation(
        'special',
        [pod.metadata.uid ?? ''],
        { pool: 'node-1', device: 'gpu-0' },
        {
          pool: 'node-1',
          device: 'gpu-1',
        },
      ),
    ]
    const claimed = { slices, allocations }
    const origins = new Map([[pod.metadata.uid ?? '', 'candidate' as const]])
    const moved = decided(
      [pod],
      [],
      { ...holding({}), origins },
      { ...claimed, leaving: [pod.metadata.uid ?? ''] },
    )
    assert.deepEqual(Object.values(placedOn(moved)), ['node-1'])
    const stays = decided([asking(1)], [], holding({}), claimed)
    assert.equal(stays.placements.length, 0)
  })
})
