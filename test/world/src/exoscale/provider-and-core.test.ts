/** What the provider and the core do together on the simulated Exoscale. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import { createCacheRegistry, createEventRecorder, createKubeClient } from '@tenon/kube'
import { defaultSettings, Operator } from '@tenon/operator'
import { ExoscaleClient, openExoscale } from '@tenon/provider-exoscale'
import { SeededRandom, silentLogger } from '@tenon/runtime'
import { intercepting } from '../testing/stage.test-support.ts'
import {
  aDeployment,
  clusterEndpoint,
  deploymentKind,
  exoscaleOptions,
  World,
  type WorldOptions,
} from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const credentials = await createCredentials(Date.UTC(2026, 0, 1))

async function aWorld(t: TestContext, options: Partial<WorldOptions> = {}): Promise<World> {
  const world = await World.start({ seed: 5, provider: 'exoscale', credentials, ...options })
  t.after(() => world.stop())
  world.create(nodeClassKind, aNodeClass('standard'))
  return world
}

/** A world whose operator has launched one node for a pod. */
async function oneNode(t: TestContext, options: Partial<WorldOptions> = {}): Promise<World> {
  const world = await aWorld(t, options)
  world.create(karpenterKinds.nodePool, aPool('standard', ['standard.medium']))
  world.create(deploymentKind, aDeployment('web', 1))
  await world.startOperator()
  await world.clock.advance(5 * minute)
  assert.equal(world.claims().length, 1)
  return world
}

const calls = (world: World, operation: string) =>
  world.cluster.cloud.calls().filter((call) => call.operation === operation)

test('EXO-102 of two replicas only the one that leads collects instances that nobody owns', async (t) => {
  const world = await aWorld(t)
  const replicas = [await aReplica(world, 'a'), await aReplica(world, 'b')]
  await aLeakedInstance(world)
  await world.clock.advance(12 * minute)
  assert.equal(world.cluster.cloud.instances().length, 1)
  assert.deepEqual(calls(world, 'list-instances'), [], 'a replica that stands by does not even look')
  replicas[1]?.lead()
  await world.clock.advance(12 * minute)
  assert.deepEqual(world.cluster.cloud.instances(), [])
  assert.equal(calls(world, 'delete-instance').length, 1)
  for (const replica of replicas) await Promise.race([replica.stop(), world.clock.advance(1000)])
})

test('EXO-133 a node that cannot be closed to pods keeps its instance, until it can', async (t) => {
  let isRefused = false
  const apiPath = intercepting((method, path, body) =>
    isRefused &&
    method !== 'GET' &&
    path.startsWith('/api/v1/nodes/') &&
    body.includes('karpenter.sh/disrupted')
      ? 'error'
      : 'pass',
  )
  const world = await oneNode(t, { apiPath })
  isRefused = true
  world.scale('web', 0)
  world.cluster.server.local.delete(
    karpenterKinds.nodeClaim,
    undefined,
    world.claims()[0]?.metadata.name ?? '',
  )
  await world.clock.advance(5 * minute)
  assert.deepEqual(calls(world, 'delete-instance'), [])
  assert.equal(world.claims().length, 1)
  isRefused = false
  await world.clock.advance(10 * minute)
  assert.deepEqual(world.cluster.cloud.instances(), [])
  assert.deepEqual(world.claims(), [])
})

test('WNT-16 an unhealthy instance is rebooted once, and replaced only if that does not help', async (t) => {
  const featureGates = { ...defaultSettings.featureGates, nodeRepair: true }
  const world = await aWorld(t, { settings: { featureGates } })
  const pool = aPool('standard', ['standard.medium'])
  const metadata = { ...pool.metadata, annotations: { 'tenon.sh/repair': 'reboot,replace' } }
  world.create(karpenterKinds.nodePool, { ...pool, metadata })
  world.create(deploymentKind, aDeployment('web', 1))
  await world.startOperator()
  await world.clock.advance(5 * minute)
  const [claim] = world.claims()
  const turn = (status: 'True' | 'False') => {
    const [node] = world.nodes()
    const others = node?.status?.conditions?.filter(({ type }) => type !== 'NetworkUnavailable') ?? []
    const lastTransitionTime = new Date(world.clock.now()).toISOString()
    const conditions = [...others, { type: 'NetworkUnavailable', status, lastTransitionTime }]
    world.cluster.server.local.patch(
      kinds.node,
      undefined,
      node?.metadata.name ?? '',
      { status: { conditions } },
      'status',
    )
  }
  turn('True')
  await world.clock.advance(6 * minute)
  assert.equal(calls(world, 'reboot-instance').length, 1)
  turn('False')
  await world.clock.advance(20 * minute)
  assert.equal(world.claims()[0]?.metadata.uid, claim?.metadata.uid)
  turn('True')
  await world.clock.advance(15 * minute)
  assert.equal(calls(world, 'reboot-instance').length, 1)
  assert.notEqual(world.claims()[0]?.metadata.uid, claim?.metadata.uid)
  assert.equal(world.cluster.cloud.instances().length, 1)
})

test('EXO-141 a node of a pool that lists the unregistered taint as a startup taint initialises', async (t) => {
  const world = await aWorld(t)
  const pool = aPool('standard', ['standard.medium'])
  const startupTaints = [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] as const
  const template = { ...pool.spec.template, spec: { ...pool.spec.template.spec, startupTaints } }
  world.create(karpenterKinds.nodePool, { ...pool, spec: { ...pool.spec, template } })
  world.create(deploymentKind, aDeployment('web', 1))
  await world.startOperator()
  await world.clock.advance(5 * minute)
  const [claim] = world.claims()
  const initialized = claim?.status?.conditions?.find(({ type }) => type === 'Initialized')
  assert.equal(initialized?.status, 'True')
  assert.deepEqual(world.nodes()[0]?.spec?.taints ?? [], [])
  assert.equal(world.pods()[0]?.status?.phase, 'Running')
})

test('with lists that lag and a limit on calls each claim gets one instance, and all go again', async (t) => {
  const cloudSettings = { listLagMs: 15_000, callLimit: { perSecond: 1, burst: 5 } }
  const world = await aWorld(t, { cloudSettings })
  world.create(karpenterKinds.nodePool, aPool('standard', ['standard.small']))
  world.create(deploymentKind, aDeployment('web', 4, { cpu: '1', memory: '1Gi' }))
  await world.startOperator()
  await world.clock.advance(15 * minute)
  assert.ok(world.pods().every(({ status }) => status?.phase === 'Running'))
  assert.equal(world.claims().length, 4)
  assert.deepEqual(
    [...world.instancesByClaim().values()].map((instances) => instances.length),
    [1, 1, 1, 1],
  )
  assert.ok(world.cluster.cloud.calls().some(({ status }) => status === 429))
  world.scale('web', 0)
  await world.clock.advance(12 * minute)
  assert.deepEqual(world.cluster.cloud.instances(), [])
  assert.deepEqual(world.claims(), [])
})

test('with an expired key or a slow clock launches say what to check, and go on once that is fixed', async (t) => {
  const world = await oneNode(t)
  const { settings } = world.cluster.cloud
  const troubles = [
    [{ expiredKeys: [exoscaleOptions().apiKey] }, { expiredKeys: [] }],
    [{ clockSkewMs: 11 * minute }, { clockSkewMs: 0 }],
  ]
  for (const [index, [wrong, right]] of troubles.entries()) {
    Object.assign(settings, wrong)
    world.scale('web', 5 + 3 * index)
    await world.clock.advance(3 * minute)
    assert.equal(world.cluster.cloud.instances().length, 1 + index)
    const conditions = world.claims().flatMap(({ status }) => status?.conditions ?? [])
    const launched = conditions.find(({ type, status }) => type === 'Launched' && status !== 'True')
    assert.match(launched?.message ?? '', /EXOSCALE_API_KEY and EXOSCALE_API_SECRET.*clock of this host/)
    Object.assign(settings, right)
    await world.clock.advance(8 * minute)
    assert.ok(world.pods().every(({ status }) => status?.phase === 'Running'))
  }
})

/** A process that has read everything and waits to lead. */
async function aReplica(world: World, name: string): Promise<Operator> {
  const { clock } = world
  const random = new SeededRandom(name)
  const client = createKubeClient({ transport: world.kubeTransport(), clock, userAgent: `karpenter/${name}` })
  const common = { clock, random, logger: silentLogger }
  const events = createEventRecorder({ ...common, client, component: name })
  const registry = createCacheRegistry({ ...common, client })
  const provider = await openExoscale({
    kubernetes: { client, registry, events, server: clusterEndpoint },
    runtime: common,
    options: exoscaleOptions(),
    connect: () => ({ send: world.cluster.cloud.handle }),
  })
  const operator = new Operator({
    kubernetes: { client, registry, events },
    runtime: common,
    provider,
    // Of a cluster that has nothing nobody else can tell that it is the right one.
    settings: { ...defaultSettings, identity: { isAccepted: true } },
  })
  const observing = operator.observe()
  await clock.advanceUntil(() => operator.waitingFor.length === 0, minute)
  await observing
  return operator
}

/** An instance of this cluster whose claim does not exist. */
async function aLeakedInstance(world: World): Promise<void> {
  const { clusterId, apiKey, apiSecret } = exoscaleOptions()
  const api = new ExoscaleClient({
    transport: { send: world.cluster.cloud.handle },
    basePath: '/v2',
    credentials: { key: apiKey, secret: apiSecret },
    clock: world.clock,
    userAgent: 'somebody',
  })
  const types = await api.listInstanceTypes()
  const template = await api.getActiveNodepoolTemplate('1.34.1', 'standard')
  await api.createInstance({
    name: 'leaked',
    'disk-size': 50,
    'instance-type': {
      id: types.find(({ family, size }) => `${family}.${size}` === 'standard.small')?.id ?? '',
    },
    template: { id: template ?? '' },
    labels: {
      'exoscale.com/managed-by': 'karpenter',
      'exoscale.com/cluster-id': clusterId,
      'exoscale.com/node-claim': 'gone',
    },
  })
}
