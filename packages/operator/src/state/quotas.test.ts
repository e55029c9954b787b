import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CapacityQuota,
  type InstanceType,
  type KubeObject,
  type LabelSelector,
  labels,
  type NodeClaim,
  parseResources,
} from '@tenon/api'
import { type NewClaim, schedule } from '@tenon/engine'
import { SeededRandom, silentLogger } from '@tenon/runtime'
import { StaticClaims } from '../nodepool/static/static-pools.ts'
import { reserveLimits } from '../provisioning/claim-reservations.ts'
import { PlannedClaims } from '../provisioning/planned-claims.ts'
import { aWaitingPod, gathered, readyPool } from './deciding.test-support.ts'
import { aClaim, aNode } from './nodes/nodes.test-support.ts'
import { ObservedCluster } from './observed-cluster.test-support.ts'

const aQuota = (
  resources: Readonly<Record<string, string>>,
  selector: LabelSelector = {},
  name = 'ceiling',
): CapacityQuota => ({
  apiVersion: 'autoscaling.x-k8s.io/v1beta1',
  kind: 'CapacityQuota',
  metadata: { name, uid: name, generation: 1 },
  spec: { selector, limits: { resources } },
})

const ofWindows = aQuota({ nodes: '0' }, { matchLabels: { [labels.os]: 'windows' } }, 'windows')

/** A cluster in which one pod waits, and what is decided about it. */
async function decided(...objects: readonly KubeObject[]) {
  const cluster = new ObservedCluster()
  cluster.see(readyPool, aWaitingPod('waiting', { containers: [{ name: 'app' }] }), ...objects)
  const { claims } = schedule(await gathered(cluster))
  const pools = { caches: cluster.caches, state: cluster.state, logger: silentLogger }
  return { cluster, claims, pools }
}

const used = (cluster: ObservedCluster) => cluster.state.quotas.inputs()[0]?.usage

test('WNT-4 a quota of Windows nodes that is used up does not concern Linux types', async () => {
  const { claims, pools } = await decided(ofWindows, aQuota({ nodes: '100' }))
  assert.deepEqual(claims[0]?.quotas, ['ceiling'])
  assert.deepEqual(reserveLimits(pools, claims).overtaken, [])
})

for (const text of ['{"cpu":-1000000000}', '[1,2]', '{}', '{"nodes":1}', '{"cpu":1e300}', '{"cpu":0.5}', 'x'])
  test(`WNT-42 annotation ${text} makes no claim count less than what it asks for, and holds nothing up`, () => {
    const cluster = new ObservedCluster()
    const claim = aClaim('a', { metadata: { annotations: { 'tenon.sh/largest': text } } })
    const asking: NodeClaim = {
      ...claim,
      spec: { ...claim.spec, resources: { requests: { cpu: '4' } } },
    }
    cluster.see(aQuota({ cpu: '10' }), asking)
    assert.equal(used(cluster)?.['cpu'], 4000)
  })

test('WNT-3 a GPU that the kubelet does not offer yet counts', () => {
  const cluster = new ObservedCluster()
  const capacity = { cpu: '4', memory: '8Gi', 'nvidia.com/gpu': '8' }
  const tags = { [labels.nodePool]: 'default', [labels.registered]: 'true' }
  cluster.see(
    aQuota({ 'nvidia.com/gpu': '8' }),
    aClaim('a', { providerID: 'a', capacity }),
    aNode('a', { providerID: 'a', capacity: { ...capacity, 'nvidia.com/gpu': '0' }, labels: tags }),
  )
  assert.equal(used(cluster)?.['nvidia.com/gpu'], 8)
})

test('WNT-3 a quota of registered nodes counts claims on their way', async () => {
  const quota = aQuota({ nodes: '1' }, { matchLabels: { [labels.registered]: 'true' } })
  const { cluster, claims, pools } = await decided(quota)
  assert.equal(reserveLimits(pools, [...claims, ...claims]).reserved.length, 1)
  cluster.see(aClaim('a', { providerID: 'a' }), aClaim('b', { providerID: 'b' }))
  assert.equal(used(cluster)?.['nodes'], 2)
})

test('WNT-3 a gang gets all of its nodes or none', async () => {
  const { claims, cluster, pools } = await decided(aQuota({ nodes: '2' }))
  const [claim] = claims
  assert.ok(claim !== undefined)
  const gang = [1, 2].map((): NewClaim => ({ ...claim, podGroups: ['gang'] }))
  cluster.see(aClaim('late', { providerID: 'late' }))
  assert.equal(reserveLimits(pools, gang).reserved.length, 0)
  assert.equal(cluster.state.limitReservations.ofQuota('ceiling')['nodes'] ?? 0, 0)
})

test('WNT-3 what no claim came of is given back although the NodePool is gone', async () => {
  const { claims, cluster, pools } = await decided(aQuota({ nodes: '1' }))
  const { state, caches, clock } = cluster
  const [reserved] = reserveLimits(pools, claims).reserved
  assert.ok(reserved !== undefined)
  state.limitReservations.follow(reserved.reservation, 'lost')
  state.poolClaims.reserve('default', 9, ['lost'])
  state.poolClaims.leaveUnsettled('lost', clock.monotonic())
  cluster.miss(readyPool)
  await clock.advance(3_600_000)
  const client = { get: () => Promise.resolve(undefined), create: () => Promise.reject(new Error('none')) }
  const claimsOfPlans = new PlannedClaims({
    provider: {},
    client,
    caches,
    state,
    clock,
    random: new SeededRandom('x'),
  })
  await claimsOfPlans.settle(new AbortController().signal)
  assert.equal(state.limitReservations.ofQuota('ceiling')['nodes'], 0)
})

test('WNT-5 two claims of one instance count once', () => {
  const cluster = new ObservedCluster()
  cluster.see(
    aQuota({ nodes: '9' }),
    aClaim('a', { providerID: 'a' }),
    aClaim('b', { providerID: 'a' }),
    aNode('a', { providerID: 'a', pool: 'default' }),
  )
  assert.equal(used(cluster)?.['nodes'], 1)
})

/** Creates claims of a static NodePool. @returns the names of those that are created. */
async function createStatic(
  cluster: ObservedCluster,
  types: readonly InstanceType[],
  names: readonly string[],
): Promise<readonly string[]> {
  const made: string[] = []
  const create = (_: unknown, object: NodeClaim) => {
    made.push(object.metadata.name)
    return Promise.resolve({ ...object, metadata: { ...object.metadata, uid: object.metadata.name } })
  }
  const claims = new StaticClaims({
    client: { create } as never,
    state: cluster.state,
    provider: {
      nodeClasses: [],
      wellKnownLabels: [],
      getInstanceTypes: () => Promise.resolve(types),
    } as never,
    creations: { note: () => undefined } as never,
    clock: cluster.clock,
    random: new SeededRandom('x'),
  })
  for (const name of names)
    await claims
      .create(readyPool, name, 'provisioned', new AbortController().signal)
      .catch((error: unknown) => {
        assert.match(String(error), /has no instance type now/)
      })
  return made
}

const aStaticType = (available: boolean): InstanceType => ({
  name: 'large',
  requirements: [
    { key: labels.instanceType, operator: 'In', values: ['large'] },
    { key: labels.os, operator: 'In', values: ['linux'] },
  ],
  offerings: [{ requirements: [], pricePerHour: 1, available }],
  capacity: parseResources({ cpu: '16' }),
  overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
})

for (const [what, types, most] of [
  ['sold out', [aStaticType(false)], 1],
  ['not listed', [], 0],
  ['for sale', [aStaticType(true)], 1],
] as const)
  test(`WNT-3 claims of a static NodePool count although all types are ${what}`, async () => {
    const cluster = new ObservedCluster()
    cluster.see(readyPool, aQuota({ cpu: '16' }))
    assert.equal((await createStatic(cluster, types, ['a', 'b', 'c'])).length, most)
  })

test('WNT-4 a static NodePool of Linux nodes is not kept small by a quota of Windows nodes', async () => {
  const cluster = new ObservedCluster()
  cluster.see(readyPool, ofWindows)
  assert.equal((await createStatic(cluster, [aStaticType(true)], ['a'])).length, 1)
})
