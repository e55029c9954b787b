import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Device,
  type DeviceClaim,
  deviceTaintRuleKinds,
  kinds,
  type PodSpec,
  type ResourceClaim,
  type ResourceSlice,
} from '@tenon/api'
import { extendedResourceCases } from '@tenon/api/scheduler-cases'
import { aCluster, inZone, type SchedulingFixture, zoneKey } from '../scheduling-fixture.test-support.ts'

const driver = 'gpu.example.com'

type SliceSpec = ResourceSlice['spec']

function slice(
  cluster: SchedulingFixture,
  pool: string,
  devices: readonly Device[],
  spec: Partial<SliceSpec> = {},
) {
  const name = `${pool}-${cluster.api.list(kinds.resourceSlice).length}`
  const place = { nodeName: pool }
  cluster.create(kinds.resourceSlice, {
    metadata: { name },
    spec: {
      driver,
      pool: { name: pool, generation: 1, resourceSliceCount: 1 },
      ...(spec.nodeSelector === undefined && spec.allNodes === undefined && place),
      devices,
      ...spec,
    },
  })
}

function claim(cluster: SchedulingFixture, name: string, devices: DeviceClaim): void {
  cluster.create(kinds.resourceClaim, { metadata: { name, namespace: 'default' }, spec: { devices } })
}

const exactly = (change: object = {}): DeviceClaim => ({
  requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu', ...change } }],
})

const using = (...names: string[]): Pick<PodSpec, 'resourceClaims'> => ({
  resourceClaims: names.map((name) => ({ name, resourceClaimName: name })),
})

const cel = (expression: string) => ({ selectors: [{ cel: { expression } }] })

const gpu = (name: string, model = 'a100', more: Partial<Device> = {}): Device => ({
  name,
  attributes: { model: { string: model } },
  ...more,
})

function withClass(): SchedulingFixture {
  return aCluster().create(kinds.deviceClass, {
    metadata: { name: 'gpu' },
    spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
  })
}

function statusOf(cluster: SchedulingFixture, name: string): NonNullable<ResourceClaim['status']> {
  return cluster.api.get(kinds.resourceClaim, 'default', name)?.status ?? {}
}

const devicesOf = (cluster: SchedulingFixture, name: string) =>
  statusOf(cluster, name).allocation?.devices?.results?.map(({ device }) => device)

describe('devices', () => {
  test('a claim gets a device of the node, is bound to the node and reserved for its pod', async () => {
    const cluster = withClass().node('a').node('b')
    slice(cluster, 'b', [gpu('gpu-0')])
    claim(cluster, 'one', exactly())
    cluster.pod('training', using('one'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('training'), 'b')
    const { allocation, reservedFor } = statusOf(cluster, 'one')
    assert.deepEqual(allocation?.devices?.results, [{ request: 'gpu', driver, pool: 'b', device: 'gpu-0' }])
    assert.deepEqual(allocation.nodeSelector, {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] }],
    })
    const uid = cluster.get('training')?.metadata.uid
    assert.deepEqual(reservedFor, [{ resource: 'pods', name: 'training', uid }])
    assert.deepEqual(cluster.api.get(kinds.resourceClaim, 'default', 'one')?.metadata.finalizers, [
      'resource.kubernetes.io/delete-protection',
    ])
  })

  test('a pod waits for a device, says so, and gets it when a driver publishes one late', async () => {
    const cluster = withClass().node('a')
    claim(cluster, 'one', exactly(cel(`device.attributes['${driver}'].model == 'h100'`)))
    slice(cluster, 'a', [gpu('gpu-0')])
    cluster.pod('training', using('one')).pod('web')
    await cluster.settle()
    assert.equal(cluster.nodeOf('web'), 'a')
    assert.match(
      cluster.reason('training') ?? '',
      /^0\/1 nodes are available: 1 cannot allocate all claims\./,
    )
    slice(cluster, 'late', [gpu('gpu-0', 'h100')], { nodeName: 'a' })
    await cluster.settle(20_000)
    assert.equal(cluster.nodeOf('training'), 'a')
  })

  test('no device is given twice, and pods of one claim go to the same node', async () => {
    const cluster = withClass().node('a').node('b')
    for (const name of ['a', 'b']) slice(cluster, name, [gpu('gpu-0')])
    for (const name of ['one', 'two', 'three']) claim(cluster, name, exactly())
    cluster.pod('p1', using('one')).pod('p2', using('two')).pod('p3', using('three')).pod('p4', using('one'))
    await cluster.settle()
    assert.deepEqual(new Set(['p1', 'p2'].map((name) => cluster.nodeOf(name))), new Set(['a', 'b']))
    assert.equal(cluster.nodeOf('p3'), undefined)
    assert.equal(cluster.nodeOf('p4'), cluster.nodeOf('p1'))
    assert.deepEqual(
      statusOf(cluster, 'one').reservedFor?.map(({ name }) => name),
      ['p1', 'p4'],
    )
  })

  test('the first alternative that can be met is, and is named', async () => {
    const cluster = withClass().node('a')
    slice(cluster, 'a', [gpu('gpu-0')])
    const way = (name: string, model: string) => ({
      name,
      deviceClassName: 'gpu',
      ...cel(`device.attributes['${driver}'].model == '${model}'`),
    })
    claim(cluster, 'any', {
      requests: [{ name: 'gpu', firstAvailable: [way('big', 'h100'), way('old', 'a100')] }],
    })
    cluster.pod('training', using('any'))
    await cluster.settle()
    assert.equal(statusOf(cluster, 'any').allocation?.devices?.results?.[0]?.request, 'gpu/old')
  })

  test('constraints hold across requests, after going back when the first choice does not lead on', async () => {
    const cluster = withClass().node('a')
    const at = (name: string, root: string, model: string): Device => ({
      name,
      attributes: { root: { string: root }, model: { string: model } },
    })
    slice(cluster, 'a', [at('g0', 'r0', 'gpu'), at('g1', 'r1', 'gpu'), at('n1', 'r1', 'nic')])
    const asking = (name: string, model: string) => ({
      name,
      exactly: { deviceClassName: 'gpu', ...cel(`device.attributes['${driver}'].model == '${model}'`) },
    })
    const requests = [asking('gpu', 'gpu'), asking('nic', 'nic')]
    claim(cluster, 'pair', { requests, constraints: [{ matchAttribute: `${driver}/root` }] })
    cluster.pod('training', using('pair'))
    await cluster.settle()
    assert.deepEqual(devicesOf(cluster, 'pair'), ['g1', 'n1'])
  })

  test('all devices are all of the node; one in use, or none, is a refusal', async () => {
    const cluster = withClass().node('a')
    slice(cluster, 'a', [gpu('gpu-0'), gpu('gpu-1')])
    claim(cluster, 'all', exactly({ allocationMode: 'All' }))
    claim(cluster, 'more', exactly({ allocationMode: 'All' }))
    cluster.pod('p1', using('all')).pod('p2', using('more'))
    await cluster.settle()
    assert.deepEqual(devicesOf(cluster, 'all'), ['gpu-0', 'gpu-1'])
    assert.equal(cluster.nodeOf('p2'), undefined)
  })

  test('claims share capacity and counters exactly up to their limits', async () => {
    const cluster = withClass().node('a').node('b')
    const shared = { allowMultipleAllocations: true, capacity: { memory: { value: '16Gi' } } }
    slice(cluster, 'a', [gpu('gpu-0', 'a100', shared)])
    const part = (memory: string) => exactly({ capacity: { requests: { memory } } })
    for (const [name, memory] of [
      ['m4', '4Gi'],
      ['m6', '6Gi'],
      ['m7', '7Gi'],
      ['n6', '6Gi'],
    ] as const)
      claim(cluster, name, part(memory))
    cluster.pod('p1', using('m4')).pod('p2', using('m6')).pod('p3', using('m7')).pod('p4', using('n6'))
    await cluster.settle()
    assert.deepEqual(
      ['p1', 'p2', 'p3', 'p4'].map((name) => cluster.nodeOf(name) ?? ''),
      ['a', 'a', '', 'a'],
    )
    const [given] = statusOf(cluster, 'm6').allocation?.devices?.results ?? []
    assert.deepEqual(given?.consumedCapacity, { [`${driver}/memory`]: '6442450944' })
    assert.match(given?.shareID ?? '', /^[0-9a-f-]{36}$/)
    const half = { consumesCounters: [{ counterSet: 'card', counters: { memory: { value: '40Gi' } } }] }
    slice(cluster, 'b', [], {
      pool: { name: 'b', generation: 1, resourceSliceCount: 2 },
      sharedCounters: [{ name: 'card', counters: { memory: { value: '80Gi' } } }],
    })
    slice(cluster, 'b', [gpu('p0', 'mig', half), gpu('p1', 'mig', half), gpu('p2', 'mig', half)], {
      pool: { name: 'b', generation: 1, resourceSliceCount: 2 },
    })
    for (const name of ['c1', 'c2', 'c3']) {
      claim(cluster, name, exactly(cel(`device.attributes['${driver}'].model == 'mig'`)))
      cluster.pod(`mig-${name}`, using(name))
    }
    await cluster.settle()
    const placed = ['c1', 'c2', 'c3'].filter((name) => cluster.nodeOf(`mig-${name}`) === 'b')
    assert.equal(placed.length, 2)
  })

  test('pools of which slices are missing, or that are broken, give nothing', async () => {
    const cluster = withClass().node('a')
    slice(cluster, 'a', [gpu('gpu-0')], { pool: { name: 'a', generation: 1, resourceSliceCount: 1 } })
    slice(cluster, 'a', [gpu('gpu-1')], { pool: { name: 'a', generation: 2, resourceSliceCount: 2 } })
    for (let twice = 0; twice < 2; twice++)
      slice(cluster, 'broken', [gpu('gpu-0')], {
        nodeName: 'a',
        pool: { name: 'broken', generation: 1, resourceSliceCount: 2 },
      })
    claim(cluster, 'one', exactly())
    cluster.pod('training', using('one'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('training'), undefined)
    slice(cluster, 'a', [gpu('gpu-2')], { pool: { name: 'a', generation: 2, resourceSliceCount: 2 } })
    await cluster.settle(20_000)
    assert.deepEqual(devicesOf(cluster, 'one'), ['gpu-1'])
  })

  test('tainted devices need a toleration, and zonal ones bind the claim to their zone', async () => {
    const cluster = withClass().node('a', inZone('z1')).node('b', inZone('z2'))
    slice(cluster, 'broken', [gpu('gpu-0', 'x', { taints: [{ key: 'broken', effect: 'NoSchedule' }] })], {
      nodeName: 'a',
    })
    const term = { matchExpressions: [{ key: zoneKey, operator: 'In' as const, values: ['z2'] }] }
    slice(cluster, 'zonal', [gpu('gpu-0')], { nodeSelector: { nodeSelectorTerms: [term] } })
    claim(cluster, 'one', exactly())
    claim(cluster, 'any', exactly({ tolerations: [{ operator: 'Exists' }] }))
    cluster.pod('p1', using('one'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p1'), 'b')
    assert.deepEqual(statusOf(cluster, 'one').allocation?.nodeSelector?.nodeSelectorTerms, [term])
    cluster.pod('p2', using('any'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p2'), 'a')
  })

  test('a rule taints devices for pods that do not tolerate it, until it is gone', async () => {
    const cluster = withClass().node('a')
    slice(cluster, 'a', [gpu('gpu-0'), gpu('gpu-1')])
    cluster.create(deviceTaintRuleKinds.v1beta2, {
      metadata: { name: 'broken' },
      spec: {
        deviceSelector: { driver, pool: 'a' },
        taint: { key: 'broken', value: 'fan', effect: 'NoSchedule' },
      },
    })
    claim(cluster, 'one', exactly())
    claim(cluster, 'any', exactly({ tolerations: [{ key: 'broken', operator: 'Exists' }] }))
    cluster.pod('p1', using('one')).pod('p2', using('any'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p1'), undefined)
    assert.match(cluster.reason('p1') ?? '', /cannot allocate all claims/)
    assert.equal(cluster.nodeOf('p2'), 'a')
    cluster.api.delete(deviceTaintRuleKinds.v1beta2, undefined, 'broken')
    await cluster.settle(20_000)
    assert.equal(cluster.nodeOf('p1'), 'a')
  })

  test('what is wrong with claims is said, and a claim without a pod gives way', async () => {
    const cluster = withClass().node('a').node('b')
    cluster.pod('p1', using('missing'))
    claim(cluster, 'classless', { requests: [{ name: 'r', exactly: { deviceClassName: 'none' } }] })
    cluster.pod('p2', using('classless'))
    cluster.pod('p3', { resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'gpu' }] })
    await cluster.settle()
    assert.match(cluster.reason('p1') ?? '', /resourceclaim "missing" not found/)
    assert.match(cluster.reason('p2') ?? '', /request r: device class none does not exist/)
    assert.match(cluster.reason('p3') ?? '', /pod "default\/p3": ResourceClaim not created yet/)
    // The claim has a device of a node that the pod cannot go to, and nobody uses it.
    for (const name of ['a', 'b']) slice(cluster, name, [gpu('gpu-0')])
    claim(cluster, 'one', exactly())
    cluster.pod('first', { ...using('one'), nodeSelector: { 'kubernetes.io/hostname': 'a' } })
    await cluster.settle()
    const latest = cluster.api.get(kinds.resourceClaim, 'default', 'one') as ResourceClaim
    cluster.api.updateStatus(kinds.resourceClaim, {
      ...latest,
      status: { ...latest.status, reservedFor: [] },
    })
    cluster.pod('second', { ...using('one'), nodeSelector: { 'kubernetes.io/hostname': 'b' } })
    await cluster.settle(20_000)
    assert.equal(cluster.nodeOf('second'), 'b')
  })
})

describe('extended resources that devices serve', () => {
  const resource = 'example.com/gpu'
  const requests = (count: number) => ({
    containers: [
      {
        name: 'main',
        image: 'app',
        resources: { requests: { [resource]: String(count) }, limits: { [resource]: String(count) } },
      },
    ],
  })

  function withServingClass(): SchedulingFixture {
    return aCluster().create(kinds.deviceClass, {
      metadata: { name: 'gpu' },
      spec: { extendedResourceName: resource },
    })
  }

  const specialClaims = (cluster: SchedulingFixture) => cluster.api.list(kinds.resourceClaim)
  const results = (special: ResourceClaim | undefined) =>
    special?.status?.allocation?.devices?.results?.map(({ request, device }) => [request, device])

  for (const { title, allocatable, used, devices, requested, fits } of extendedResourceCases)
    test(`VER-13 ${title}`, async () => {
      const reported = allocatable !== undefined && { [resource]: String(allocatable) }
      const cluster = withServingClass().node('a', { ...(reported && { allocatable: reported }) })
      const gpus = Array.from({ length: devices }, (_, at) => gpu(`gpu-${at}`))
      if (devices > 0) slice(cluster, 'a', gpus)
      if (used > 0) cluster.pod('running', requests(used))
      await cluster.settle()
      cluster.pod('new', requests(requested))
      await cluster.settle()
      assert.equal(cluster.nodeOf('new'), fits ? 'a' : undefined)
    })

  test('VER-10 the pod gets one claim of its own, with a request for each container', async () => {
    const cluster = withServingClass().node('a')
    slice(cluster, 'a', [gpu('gpu-0'), gpu('gpu-1')])
    const [main] = requests(1).containers
    cluster.pod('training', {
      containers: ['main', 'side'].map((name) => ({ image: 'app', ...main, name })),
    })
    await cluster.settle()
    assert.equal(cluster.nodeOf('training'), 'a')
    const [special, ...others] = specialClaims(cluster)
    assert.deepEqual(others, [])
    assert.match(special?.metadata.name ?? '', /^training-extended-resources-.+/)
    const { annotations, ownerReferences } = special?.metadata ?? {}
    assert.equal(annotations?.['resource.kubernetes.io/extended-resource-claim'], 'true')
    const { uid } = cluster.get('training')?.metadata ?? {}
    assert.deepEqual(
      ownerReferences?.map((owner) => [owner.kind, owner.uid, owner.controller]),
      [['Pod', uid, true]],
    )
    assert.deepEqual(special?.status?.reservedFor, [{ resource: 'pods', name: 'training', uid }])
    assert.deepEqual(results(special), [
      ['container-0-request-0', 'gpu-0'],
      ['container-1-request-0', 'gpu-1'],
    ])
    assert.deepEqual(cluster.get('training')?.status?.extendedResourceClaimStatus, {
      resourceClaimName: special?.metadata.name,
      requestMappings: [
        { containerName: 'main', resourceName: resource, requestName: 'container-0-request-0' },
        { containerName: 'side', resourceName: resource, requestName: 'container-1-request-0' },
      ],
    })
  })

  test('VER-16 an ordinary claim and the resource come from one node, or not at all', async () => {
    const cluster = withServingClass().node('a').node('b')
    slice(cluster, 'a', [gpu('gpu-0')])
    claim(cluster, 'one', exactly())
    cluster.pod('training', { ...using('one'), ...requests(1) })
    await cluster.settle()
    assert.equal(cluster.nodeOf('training'), undefined)
    assert.equal(specialClaims(cluster).length, 1)
    slice(cluster, 'b', [gpu('gpu-0'), gpu('gpu-1')])
    await cluster.settle(20_000)
    assert.equal(cluster.nodeOf('training'), 'b')
    assert.equal(specialClaims(cluster).length, 2)
  })

  test('VER-20 a pod is tried again when a class begins to serve its resource', async () => {
    const cluster = aCluster().node('a')
    slice(cluster, 'a', [gpu('gpu-0')])
    cluster.pod('training', requests(1))
    await cluster.settle()
    assert.match(cluster.reason('training') ?? '', /Insufficient example\.com\/gpu/)
    cluster.create(kinds.deviceClass, {
      metadata: { name: 'gpu' },
      spec: { extendedResourceName: resource },
    })
    await cluster.settle(20_000)
    assert.equal(cluster.nodeOf('training'), 'a')
  })

  test('VER-14 of two classes with the resource the newer one counts', async () => {
    const cluster = withServingClass().node('a')
    slice(cluster, 'a', [gpu('gpu-0', 'a100'), gpu('gpu-1', 'h100')])
    await cluster.settle(5000)
    cluster.create(kinds.deviceClass, {
      metadata: { name: 'newer' },
      spec: {
        extendedResourceName: resource,
        ...cel(`device.attributes['${driver}'].model == 'h100'`),
      },
    })
    cluster.pod('training', requests(1))
    await cluster.settle()
    assert.deepEqual(results(specialClaims(cluster)[0]), [['container-0-request-0', 'gpu-1']])
  })
})
