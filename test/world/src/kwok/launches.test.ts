/** What a launch with the simulated provider comes to (operations.md 12.4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isConditionTrue, karpenterKinds, kinds, labels, type NodePool, unregisteredTaint } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { oneChunk, type Transport } from '@tenon/runtime'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  catalogueOf,
  configure,
  is,
  launch,
  nodeOf,
  nodeUnder,
  openKwok,
  pod,
} from '../testing/kwok-stage.test-support.ts'

const onDemand = is(labels.capacityType, 'on-demand')
const small = ['c-2x-amd64-linux', 'c-1x-amd64-linux']

test('OPS-63 OPS-64 OPS-65 the cheapest fitting offering is taken, and its price told', async (t) => {
  const stage = await openKwok(t)
  await launch(stage, 'dear', small, onDemand)
  await launch(stage, 'any', small, is(labels.capacityType, 'on-demand', 'spot'))
  await launch(stage, 'there', small, onDemand, is(labels.zone, 'test-zone-c'))
  const told = (name: string, key: string) => nodeOf(stage, name)?.metadata.labels?.[key]
  assert.equal(told('dear', labels.instanceType), 'c-1x-amd64-linux')
  assert.equal(told('dear', labels.capacityType), 'on-demand')
  assert.equal(told('dear', 'eks-node-viewer/instance-price'), '0.027147')
  assert.equal(told('any', labels.capacityType), 'spot')
  assert.equal(told('there', labels.zone), 'test-zone-c')
})

test('OPS-66 a node appears after its delay, its claim is launched before', async (t) => {
  const stage = await openKwok(t)
  configure(stage, { nodeRegistrationDelay: '30s' })
  await launch(stage, 'late', small, onDemand)
  await stage.pass(28 * seconds)
  const claim = stage.claimNow('late')
  assert.ok(claim && isConditionTrue(claim, 'Launched'))
  assert.deepEqual(stage.world.nodes(), [])
  await stage.pass(5 * seconds)
  assert.equal(stage.world.nodes().length, 1)
})

test('OPS-67 a claim whose node class is deleted before the launch is removed for lack of capacity', async (t) => {
  const stage = await openKwok(t)
  stage.delete(kwokNodeClassKind, 'default')
  await launch(stage, 'orphan', small, onDemand)
  await stage.pass(10 * seconds)
  assert.equal(stage.claimNow('orphan'), undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'insufficient_capacity' }), 1)
})

test('OPS-68 a claim whose node class is not ready is removed and says why', async (t) => {
  const stage = await openKwok(t)
  const condition = {
    type: 'Ready',
    status: 'False',
    reason: 'Told',
    message: 'not yet',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  stage.patch(kwokNodeClassKind, 'default', { status: { conditions: [condition] } }, 'status')
  await launch(stage, 'early', small, onDemand)
  await stage.pass(10 * seconds)
  assert.equal(stage.claimNow('early'), undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'nodeclass_not_ready' }), 1)
})

test('OPS-69 a claim whose node an admission policy refuses is removed after 15 minutes', async (t) => {
  const attempts: number[] = []
  const apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      if (request.method !== 'POST' || !request.path.startsWith('/api/v1/nodes'))
        return await inner.send(request, signal)
      attempts.push(stage.now)
      const status = { kind: 'Status', reason: 'Invalid', code: 422, message: 'a policy refuses Nodes' }
      return { status: 422, headers: {}, body: oneChunk(JSON.stringify(status)) }
    },
  })
  const stage = await openKwok(t, { apiPath })
  await launch(stage, 'refused', small, onDemand)
  await stage.pass(5 * seconds)
  const [first = 0] = attempts
  const pauses = attempts.map((at) => at - first)
  assert.equal(attempts.length, 4, 'it is tried four times, at once and with growing pauses')
  assert.ok((pauses[1] ?? 0) >= 10 && (pauses[2] ?? 0) >= 60 && (pauses[3] ?? 0) >= 310)
  assert.ok((pauses[3] ?? 0) <= 342, 'ten per cent are left to chance')
  const claim = stage.claimNow('refused')
  assert.ok(claim && isConditionTrue(claim, 'Launched'))
  await stage.pass(14 * minutes)
  assert.ok(stage.claimNow('refused') !== undefined)
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('refused'), undefined)
})

test('OPS-70 what a created node carries', async (t) => {
  const stage = await openKwok(t)
  await stage.claim(
    'one',
    {
      requirements: [is(labels.instanceType, ...small), onDemand, is('example.com/team', 'red')],
      resources: { requests: { cpu: '500m', memory: '1Gi', pods: '3' } },
    },
    { labels: { 'example.com/tier': 'web' }, annotations: { 'example.com/note': 'text' } },
  )
  const node = nodeOf(stage, 'one')
  assert.ok(node)
  assert.match(node.metadata.name, /^kwok-one-[a-z]+-[a-z]+-\d+-[a-z0-9]{10}-\d+$/)
  assert.equal(node.spec?.providerID, `kwok://${node.metadata.name}`)
  const expected = {
    'example.com/tier': 'web',
    'example.com/team': 'red',
    'karpenter.kwok.sh/kwoknodeclass': 'default',
    'karpenter.kwok.sh/instance-cpu': '1',
    'karpenter.kwok.sh/instance-memory': '2Gi',
    'karpenter.kwok.sh/instance-family': 'c',
    'karpenter.kwok.sh/instance-size': '1',
    'eks-node-viewer/instance-price': '0.027147',
    'kwok-partition': 'a',
    'kwok.x-k8s.io/node': 'fake',
    'kubernetes.io/arch': 'amd64',
    [labels.hostname]: 'one',
    [labels.nodePool]: 'default',
  }
  for (const [key, value] of Object.entries(expected)) assert.equal(node.metadata.labels?.[key], value, key)
  assert.equal(node.metadata.annotations?.['kwok.x-k8s.io/node'], 'fake')
  assert.equal(node.metadata.annotations?.['example.com/note'], 'text')
  const claim = stage.claimNow('one')
  for (const key of ['kwok-partition', 'eks-node-viewer/instance-price', labels.zone])
    assert.equal(claim?.metadata.labels?.[key], node.metadata.labels?.[key], `the claim has ${key} as well`)
  assert.equal(claim?.metadata.annotations?.['kwok.x-k8s.io/node'], 'fake')
  assert.deepEqual(claim?.status?.capacity, { cpu: '500m', memory: '1Gi', pods: '3' })
  assert.deepEqual(claim?.status?.allocatable, {
    cpu: '900m',
    memory: '2038Mi',
    pods: '16',
    'ephemeral-storage': '20Gi',
  })
})

test('OPS-70 a node begins with one taint, unregistered', async (t) => {
  const bodies: string[] = []
  const apiPath = (inner: Transport): Transport => ({
    send: (request, signal) => {
      if (request.method === 'POST' && request.path.startsWith('/api/v1/nodes'))
        bodies.push(String(request.body))
      return inner.send(request, signal)
    },
  })
  const stage = await openKwok(t, { apiPath })
  await launch(stage, 'one', small, onDemand)
  const [made] = bodies.map((body) => JSON.parse(body))
  assert.deepEqual(made.spec.taints, [unregisteredTaint])
  assert.equal(made.status.phase, 'Pending')
})

test('nodes are spread over the partitions that there are', async (t) => {
  const stage = await openKwok(t, { kwok: { partitions: ['a', 'b'] } })
  for (let index = 0; index < 8; index++) await launch(stage, `c${index}`, small, onDemand)
  const used = stage.world.nodes().map(({ metadata }) => metadata.labels?.['kwok-partition'])
  assert.deepEqual(new Set(used), new Set(['a', 'b']))
})

function item(name: string, offerings: readonly object[], resources: object = {}): object {
  return {
    name,
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi', ...resources },
    offerings,
  }
}
const offering = (Price: number, more: Readonly<Record<string, string>> = {}) => ({
  Price,
  Requirements: Object.entries({
    [labels.zone]: 'zone-a',
    [labels.capacityType]: 'on-demand',
    ...more,
  }).map(([key, value]) => is(key, value)),
})

test('OPS-71 GPU pods run on a type of one’s own catalogue', async (t) => {
  const instanceTypes = catalogueOf([
    item('plain.large', [offering(1)]),
    item('gpu.large', [offering(5)], { 'nvidia.com/gpu': '2' }),
  ])
  const stage = await openKwok(t, { kwok: { instanceTypes } })
  pod(stage, 'gpu', { requests: { cpu: '1', 'nvidia.com/gpu': '1' } })
  await stage.pass(minutes)
  assert.equal(stage.podNow('gpu')?.status?.phase, 'Running')
  assert.equal(nodeUnder(stage, 'gpu')?.metadata.labels?.[labels.instanceType], 'gpu.large')
})

test('OPS-74 without any instance type the controller runs, and nothing is launched', async (t) => {
  const stage = await openKwok(t, { kwok: { instanceTypes: [] } })
  pod(stage, 'waiting')
  await stage.pass(minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.equal(stage.podNow('waiting')?.spec.nodeName, undefined)
  assert.ok(stage.events('FailedScheduling').length > 0)
})

test('OPS-76 a label that offerings differ by can be asked for by pods and pools', async (t) => {
  const rack = 'example.com/rack'
  const racks = [offering(1, { [rack]: 'r1' }), offering(2, { [rack]: 'r2' })]
  const kwok = { instanceTypes: catalogueOf([item('plain.large', racks)]) }
  const stage = await openKwok(t, { kwok })
  pod(stage, 'by-pod', { nodeSelector: { [rack]: 'r2' } })
  await stage.pass(minutes)
  assert.equal(nodeUnder(stage, 'by-pod')?.metadata.labels?.[rack], 'r2')

  const usual = aKwokPool().spec.template
  const requirements = [...usual.spec.requirements, is(rack, 'r2')]
  const pool = { template: { ...usual, spec: { ...usual.spec, requirements } } }
  const other = await openKwok(t, { kwok, pool })
  pod(other, 'by-pool')
  await other.pass(minutes)
  assert.equal(nodeUnder(other, 'by-pool')?.metadata.labels?.[rack], 'r2')

  const unknown = await openKwok(t, {
    kwok: { instanceTypes: catalogueOf([item('x.large', [offering(1)])]) },
  })
  pod(unknown, 'by-pod', { nodeSelector: { [rack]: 'r2' } })
  await unknown.pass(minutes)
  assert.deepEqual(unknown.world.claims(), [], 'of a label that no offering has, nothing is expected')
})

test('OPS-77 an unknown label of the domain is refused; that of the node class makes no valid pool', async (t) => {
  const stage = await openKwok(t)
  const poolRequiring = (name: string, key: string): NodePool => {
    const { template, ...spec } = aKwokPool().spec
    const requirements = [{ key, operator: 'Exists' as const }]
    return aKwokPool(name, { ...spec, template: { ...template, spec: { ...template.spec, requirements } } })
  }
  const create = (name: string, key: string) =>
    stage.world.create(karpenterKinds.nodePool, poolRequiring(name, key))
  assert.throws(
    () => create('foo', 'karpenter.kwok.sh/foo'),
    /label domain "karpenter.kwok.sh" is restricted/,
  )
  create('class', 'karpenter.kwok.sh/kwoknodeclass')
  create('cpu', 'karpenter.kwok.sh/instance-cpu')
  await stage.pass(5 * seconds)
  const isValid = (name: string) => {
    const pool = stage.poolNow(name)
    return pool !== undefined && isConditionTrue(pool, 'ValidationSucceeded')
  }
  assert.deepEqual([isValid('class'), isValid('cpu')], [false, true])
})

test('OPS-79 a type without a fitting offering is passed over', async (t) => {
  const stage = await openKwok(t)
  const linuxOrNot = ['c-1x-amd64-windows', 'c-1x-amd64-linux', 'm-1x-amd64-linux']
  await launch(stage, 'one', linuxOrNot, onDemand, is(labels.zone, 'test-zone-b'))
  await launch(stage, 'none', ['c-1x-amd64-linux'], onDemand, is(labels.zone, 'nowhere'))
  assert.equal(nodeOf(stage, 'one')?.metadata.labels?.[labels.zone], 'test-zone-b')
  assert.equal(stage.state('none', 'Launched'), 'Unknown/LaunchFailed')
  assert.equal(stage.world.nodes().length, 1)

  const elsewhere = [{ ...offering(0.1), Requirements: [is(labels.zone, 'zone-b'), onDemand] }]
  const kwok = { instanceTypes: catalogueOf([item('b.large', elsewhere), item('a.large', [offering(1)])]) }
  const mixed = await openKwok(t, { kwok })
  await launch(mixed, 'two', ['b.large', 'a.large'], onDemand, is(labels.zone, 'zone-a'))
  assert.equal(nodeOf(mixed, 'two')?.metadata.labels?.[labels.instanceType], 'a.large')
})

test('a claim of a static NodePool, which lists no types, gets the cheapest that suits', async (t) => {
  const stage = await openKwok(t)
  const requirements = [onDemand, is(labels.os, 'windows'), is('karpenter.kwok.sh/instance-cpu', '4', '8')]
  await stage.claim('static', { requirements }, { labels: { [labels.nodePool]: 'default' } })
  assert.match(nodeOf(stage, 'static')?.metadata.labels?.[labels.instanceType] ?? '', /^c-4x-.*-windows$/)
})

test('a claim that lists a type that is not there, or is of no pool and lists none, is told so', async (t) => {
  const stage = await openKwok(t)
  await launch(stage, 'unknown', ['c-1x-amd64-linux', 'c-3x-amd64-linux'], onDemand)
  const { metadata, ...rest } = stage.aClaim('none', { requirements: [onDemand] })
  stage.world.create(karpenterKinds.nodeClaim, { ...rest, metadata: { name: metadata.name } })
  await stage.pass(5000)
  assert.match(stage.condition('unknown', 'Launched')?.message ?? '', /no instance type c-3x-amd64-linux/)
  assert.match(stage.condition('none', 'Launched')?.message ?? '', /name no instance type/)
  assert.deepEqual(stage.world.cluster.server.local.list(kinds.node), [])
})
