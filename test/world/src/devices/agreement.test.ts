/**
 * The engine against the scheduler's allocator, which is written apart from it: on random slices and claims, a pod
 * that the engine places on a node finds devices there, and one that it does not place finds none (devices.md 3.11).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Device,
  type DeviceClaim,
  type DeviceClass,
  type DeviceSubRequest,
  labels,
  type Node,
  parseResources,
  type Pod,
  type ResourceClaim,
  type ResourceSlice,
  wellKnownLabels,
} from '@tenon/api'
import { type DevicesInput, schedule } from '@tenon/engine'
import {
  ClusterIndex,
  DeviceIndex,
  PodCycle,
  podFacts,
  ResourceTable,
  SpreadDomains,
  VolumeIndex,
} from '@tenon/filters'
import * as fc from 'fast-check'

const driver = 'gpu.example.com'
const nodeName = 'node-1'
const resource = 'example.com/gpu'
/** Of the counters of the node's pool. */
const totals = { a: 4, b: 5 }

/** What is drawn of a device; the pool is of the node, or of the network, where nothing is partitioned. */
interface Drawn {
  readonly kind: string
  readonly root: number | undefined
  /** Units that claims share, or that a claim may ask of a whole device. */
  readonly units: number | undefined
  readonly isShared: boolean
  readonly uses: Readonly<Record<string, number>>
  readonly isTainted: boolean
  /** Some claim of another pod has it, or a unit of it. */
  readonly isHeld: boolean
}

const drawnDevices: fc.Arbitrary<readonly Drawn[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('x', 'y'),
    root: fc.option(fc.integer({ min: 0, max: 1 }), { nil: undefined }),
    units: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    isShared: fc.boolean(),
    uses: fc.constantFrom({}, {}, {}, { a: 2 }, { a: 3 }, { b: 2 }, { a: 1, b: 3 }),
    isTainted: fc.constantFrom(false, false, false, false, true),
    isHeld: fc.constantFrom(false, false, false, true),
  }),
  { minLength: 0, maxLength: 4 },
)

const way: fc.Arbitrary<DeviceSubRequest> = fc
  .record({
    kind: fc.constantFrom(undefined, undefined, 'x', 'y'),
    count: fc.constantFrom(1, 1, 1, 2, 3, undefined),
    units: fc.constantFrom(undefined, undefined, undefined, 1, 2, 3),
    tolerates: fc.constantFrom(false, false, true),
  })
  .map(({ kind, count, units, tolerates }) => ({
    deviceClassName: 'gpu',
    ...(kind !== undefined && {
      selectors: [{ cel: { expression: `device.attributes['${driver}'].kind == '${kind}'` } }],
    }),
    ...(count === undefined ? { allocationMode: 'All' as const } : { count }),
    ...(units !== undefined && { capacity: { requests: { units: String(units) } } }),
    ...(tolerates && { tolerations: [{ operator: 'Exists' as const }] }),
  }))

const drawnClaim: fc.Arbitrary<DeviceClaim> = fc
  .record({
    requests: fc.array(
      fc.oneof(
        way.map((exactly) => ({ exactly })),
        fc
          .array(way, { minLength: 1, maxLength: 2 })
          .map((ways) => ({ firstAvailable: ways.map((each, at) => ({ ...each, name: `w${at}` })) })),
      ),
      { minLength: 1, maxLength: 2 },
    ),
    rule: fc.constantFrom(undefined, undefined, 'matchAttribute' as const, 'distinctAttribute' as const),
    isPartial: fc.boolean(),
  })
  .map(({ requests, rule, isPartial }) => ({
    requests: requests.map((request, at) => ({ ...request, name: `r${at}` })),
    ...(rule !== undefined && {
      constraints: [{ [rule]: `${driver}/root`, ...(isPartial && { requests: ['r0'] }) }],
    }),
  }))

const cluster = fc.record({
  own: drawnDevices,
  network: drawnDevices,
  claims: fc.array(drawnClaim, { minLength: 1, maxLength: 3 }),
  isComplete: fc.constantFrom(true, true, true, false),
  /** Devices for an extended resource. */
  extended: fc.constantFrom(0, 0, 0, 1, 2),
})

function deviceOf(drawn: Drawn, index: number, isPartitioned: boolean): Device {
  const { kind, root, units, isShared, uses, isTainted } = drawn
  const counters = isPartitioned
    ? Object.entries(uses).map(([key, value]) => [key, { value: String(value) }])
    : []
  return {
    name: `d${index}`,
    attributes: { kind: { string: kind }, ...(root !== undefined && { root: { int: root } }) },
    ...(units !== undefined && { capacity: { units: { value: String(units) } } }),
    ...(isShared && { allowMultipleAllocations: true }),
    ...(counters.length > 0 && {
      consumesCounters: [{ counterSet: 'set', counters: Object.fromEntries(counters) }],
    }),
    ...(isTainted && { taints: [{ key: 'example.com/broken', effect: 'NoSchedule' as const }] }),
  }
}

function aSlice(name: string, count: number, spec: Partial<ResourceSlice['spec']>): ResourceSlice {
  const [pool = ''] = name.split('.')
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name },
    spec: { driver, pool: { name: pool, generation: 1, resourceSliceCount: count }, ...spec },
  }
}

/** Nobody was given more of the counters than there is. */
function withinCounters(devices: readonly Drawn[]): readonly Drawn[] {
  const left = new Map(Object.entries(totals))
  return devices.map((drawn) => {
    const uses = Object.entries(drawn.uses)
    const isHeld = drawn.isHeld && uses.every(([key, value]) => (left.get(key) ?? 0) >= value)
    if (isHeld) for (const [key, value] of uses) left.set(key, (left.get(key) ?? 0) - value)
    return { ...drawn, isHeld }
  })
}

/** The claim of another pod that has what is held of a pool. */
function holderOf(pool: string, devices: readonly Drawn[]): ResourceClaim {
  const results = devices.flatMap(({ isHeld, isShared, units }, index) =>
    isHeld
      ? [
          {
            request: 'r0',
            driver,
            pool,
            device: `d${index}`,
            ...(isShared && units !== undefined && { consumedCapacity: { units: '1' } }),
          },
        ]
      : [],
  )
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: `held-${pool}`, namespace: 'default', uid: `held-${pool}` },
    spec: { devices: { requests: [] } },
    status: {
      allocation: { devices: { results } },
      reservedFor: [{ resource: 'pods', name: 'other', uid: 'other' }],
    },
  }
}

const gpuClass: DeviceClass = {
  apiVersion: 'resource.k8s.io/v1',
  kind: 'DeviceClass',
  metadata: { name: 'gpu' },
  spec: {
    extendedResourceName: resource,
    selectors: [{ cel: { expression: `device.driver == '${driver}'` } }],
  },
}
const nodeLabels = { [labels.hostname]: nodeName, [labels.os]: 'linux', [labels.arch]: 'amd64' }
const amounts = { cpu: '8', memory: '8Gi', pods: '110' }
const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: nodeName, labels: nodeLabels },
  status: { capacity: amounts, allocatable: amounts },
}

function isPlaced(pod: Pod, devices: DevicesInput): boolean {
  const result = schedule({
    pods: [pod],
    nodes: [
      {
        name: nodeName,
        labels: nodeLabels,
        taints: [],
        initialized: true,
        available: parseResources(amounts),
        daemonRequests: {},
        usedHostPorts: [],
      },
    ],
    pools: [],
    daemons: [],
    topology: {
      pods: [],
      nodes: new Map([[nodeName, { hostname: nodeName, labels: nodeLabels, taints: [], isCandidate: true }]]),
      namespaces: new Map([['default', {}]]),
    },
    policy: {
      preferences: 'Respect',
      minValues: 'Strict',
      wellKnownLabels: new Set(wellKnownLabels),
      maxInstanceTypes: 600,
    },
    devices,
  })
  return result.placements.length === 1
}

function findsDevices(pod: Pod, objects: DeviceIndex): boolean {
  const table = new ResourceTable()
  const index = new ClusterIndex(table)
  const view = {
    index,
    volumes: new VolumeIndex(),
    spreadDomains: new SpreadDomains(index),
    devices: objects,
  }
  const entry = index.setNode(nodeName, node)
  const cycle = new PodCycle(podFacts(pod, table), view)
  assert.equal(cycle.early, undefined)
  return Array.isArray(cycle.devicesOn(entry))
}

test('the engine and the allocator of the scheduler agree on which pods find devices on a node', () => {
  const counts = { both: 0, neither: 0 }
  fc.assert(
    fc.property(cluster, ({ own: drawn, network, claims, isComplete, extended }) => {
      const own = withinCounters(drawn)
      const counters = Object.entries(totals).map(([key, value]) => [key, { value: String(value) }])
      const sharedCounters = [{ name: 'set', counters: Object.fromEntries(counters) }]
      const published = [
        aSlice('own.0', 2, { nodeName, devices: own.map((each, at) => deviceOf(each, at, true)) }),
        aSlice('own.1', 2, { nodeName, sharedCounters }),
        aSlice('network.0', isComplete ? 1 : 2, {
          allNodes: true,
          devices: network.map((each, at) => deviceOf(each, at, false)),
        }),
      ]
      const held = [holderOf('own', own), holderOf('network', network)]
      const wanted = claims.map(
        (devices, at): ResourceClaim => ({
          apiVersion: 'resource.k8s.io/v1',
          kind: 'ResourceClaim',
          metadata: { name: `c${at}`, namespace: 'default', uid: `c${at}` },
          spec: { devices },
        }),
      )
      const asked = extended === 0 ? {} : { [resource]: String(extended) }
      const pod: Pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: 'pod',
          namespace: 'default',
          uid: 'pod',
          creationTimestamp: '2026-01-01T00:00:00Z',
        },
        spec: {
          containers: [{ name: 'app', resources: { requests: { cpu: '100m', ...asked } } }],
          resourceClaims: wanted.map(({ metadata: { name } }) => ({ name, resourceClaimName: name })),
        },
      }
      const objects = new DeviceIndex()
      for (const slice of published) objects.setSlice(slice)
      objects.setClass(gpuClass)
      for (const claim of [...held, ...wanted]) objects.setClaim(claim)
      const names = wanted.map(({ metadata: { name } }) => `default/${name}`)
      const engine = isPlaced(pod, {
        slices: published,
        classes: [gpuClass],
        extendedResources: new Map([[resource, gpuClass.metadata.name]]),
        claims: new Map(wanted.map((claim, at) => [names[at] ?? '', claim])),
        claimsOf: new Map([['pod', names]]),
        allocations: held.map(({ metadata, status }) => ({
          claim: `default/${metadata.name}`,
          pods: ['other'],
          devices: (status?.allocation?.devices?.results ?? []).map(({ pool, device, consumedCapacity }) => ({
            driver,
            pool,
            device,
            consumedCapacity,
          })),
        })),
        leaving: new Set(),
      })
      assert.equal(engine, findsDevices(pod, objects))
      counts[engine ? 'both' : 'neither']++
    }),
    { numRuns: 1500 },
  )
  // Neither answer is rare.
  assert.ok(Math.min(counts.both, counts.neither) > 150, JSON.stringify(counts))
})
