import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Pod, type ResourceClaim } from '@tenon/api'
import { startWorld, template, type World } from '../world.test-support.ts'

const finalizer = 'resource.kubernetes.io/delete-protection'
const spec = { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } }

function createTemplate(world: World): void {
  world.api.create(kinds.resourceClaimTemplate, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'gpu', namespace: 'default' },
    spec: { metadata: { labels: { tier: 'fast' }, annotations: { note: 'kept' } }, spec },
  })
}

function createPod(world: World, change: Partial<Pod['spec']> = {}, name = 'training'): Pod {
  return world.api.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      ...template(name).spec,
      resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'gpu' }],
      ...change,
    },
  })
}

const claims = (world: World) => world.api.list<ResourceClaim>(kinds.resourceClaim)
const podOf = (world: World, name = 'training') => world.api.get(kinds.pod, 'default', name)

/** Gives a claim a device and reserves it for pods, as the scheduler does. */
function allocate(world: World, claim: ResourceClaim, ...pods: readonly Pod[]): void {
  const protectedClaim = world.api.patch(kinds.resourceClaim, 'default', claim.metadata.name, {
    metadata: { finalizers: [finalizer] },
  })
  const result = { request: 'gpu', driver: 'gpu.example.com', pool: 'a', device: 'gpu-0' }
  world.api.updateStatus(kinds.resourceClaim, {
    ...protectedClaim,
    status: {
      allocation: { devices: { results: [result] } },
      reservedFor: pods.map(({ metadata: { name, uid = '' } }) => ({ resource: 'pods', name, uid })),
    },
  })
}

test('a claim is made from its template, named after its pod, told to the pod, and goes with it', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createTemplate(world)
  const pod = createPod(world)
  await world.settle()
  const [claim] = claims(world)
  assert.match(claim?.metadata.name ?? '', /^training-gpu-/)
  assert.deepEqual(claim?.metadata.labels, { tier: 'fast' })
  assert.deepEqual(claim.metadata.annotations, {
    note: 'kept',
    'resource.kubernetes.io/pod-claim-name': 'gpu',
  })
  assert.equal(claim.metadata.ownerReferences?.[0]?.uid, pod.metadata.uid)
  assert.deepEqual(podOf(world)?.status?.resourceClaimStatuses, [
    { name: 'gpu', resourceClaimName: claim.metadata.name },
  ])
  world.api.delete(kinds.pod, 'default', 'training')
  await world.settle(60_000)
  assert.deepEqual(claims(world), [])
})

test('a template that is missing is told on the pod, and used once it is there', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createPod(world)
  await world.settle()
  assert.deepEqual(claims(world), [])
  assert.match(
    world.events('FailedResourceClaimCreation').join(),
    /ResourceClaimTemplate default\/gpu \(spec\.resourceClaims\) does not exist; create it/,
  )
  createTemplate(world)
  await world.settle()
  assert.equal(claims(world).length, 1)
})

test('a controller that stopped before it told the pod makes no second claim; a deleted one is made again', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  createTemplate(world)
  createPod(world)
  await world.settle()
  const [first] = claims(world)
  world.api.updateStatus(kinds.pod, { ...(podOf(world) as Pod), status: {} })
  world.restart()
  await world.settle()
  assert.deepEqual(
    claims(world).map(({ metadata }) => metadata.uid),
    [first?.metadata.uid],
  )
  assert.equal(podOf(world)?.status?.resourceClaimStatuses?.[0]?.resourceClaimName, first?.metadata.name)
  world.api.delete(kinds.resourceClaim, 'default', first?.metadata.name ?? '')
  await world.settle()
  const [second] = claims(world)
  assert.notEqual(second?.metadata.uid, first?.metadata.uid)
  assert.equal(podOf(world)?.status?.resourceClaimStatuses?.[0]?.resourceClaimName, second?.metadata.name)
})

test('a claim is reserved until its last pod has ended, then gives its devices back; one made for a pod goes', async (t) => {
  const world = startWorld({ nodes: ['a'] })
  t.after(() => world.stop())
  createTemplate(world)
  const named = world.api.create(kinds.resourceClaim, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: 'shared', namespace: 'default' },
    spec,
  })
  const using = { resourceClaims: [{ name: 'gpu', resourceClaimName: 'shared' }] }
  const pods = ['p1', 'p2'].map((name) => createPod(world, using, name))
  const own = createPod(world)
  await world.settle()
  const made = claims(world).find(({ metadata }) => metadata.name !== 'shared') as ResourceClaim
  allocate(world, named, ...pods)
  allocate(world, made, own)
  await world.settle()
  const shared = () => world.api.get(kinds.resourceClaim, 'default', 'shared')
  assert.equal(shared()?.status?.reservedFor?.length, 2)
  world.api.delete(kinds.pod, 'default', 'p1', { gracePeriodSeconds: 0 })
  await world.settle()
  assert.deepEqual(
    shared()?.status?.reservedFor?.map(({ name }) => name),
    ['p2'],
  )
  assert.notEqual(shared()?.status?.allocation, undefined)
  for (const name of ['p2', 'training'])
    world.api.patch(kinds.pod, 'default', name, { status: { phase: 'Succeeded' } }, 'status')
  await world.settle()
  assert.equal(shared()?.status?.allocation, undefined)
  assert.deepEqual(shared()?.status?.reservedFor ?? [], [])
  assert.deepEqual(shared()?.metadata.finalizers ?? [], [])
  assert.equal(world.api.get(kinds.resourceClaim, 'default', made.metadata.name), undefined)
})

test('a claim that is deleted while a pod uses it stays until the pod has gone', async (t) => {
  const world = startWorld({ nodes: ['a'] })
  t.after(() => world.stop())
  createTemplate(world)
  const pod = createPod(world)
  await world.settle()
  const [claim] = claims(world)
  allocate(world, claim as ResourceClaim, pod)
  world.api.delete(kinds.resourceClaim, 'default', claim?.metadata.name ?? '')
  await world.settle()
  assert.equal(claims(world)[0]?.status?.reservedFor?.length, 1)
  world.api.delete(kinds.pod, 'default', 'training', { gracePeriodSeconds: 0 })
  await world.settle(60_000)
  assert.deepEqual(claims(world), [])
})

test('a pod that was put on its node without the scheduler has its allocated claim reserved', async (t) => {
  const world = startWorld({ nodes: ['a'] })
  t.after(() => world.stop())
  const claim = world.api.create(kinds.resourceClaim, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: 'shared', namespace: 'default' },
    spec,
  })
  const using = { resourceClaims: [{ name: 'gpu', resourceClaimName: 'shared' }] }
  const holder = createPod(world, using, 'holder')
  createPod(world, { ...using, nodeName: 'a' }, 'placed')
  await world.settle()
  allocate(world, claim, holder)
  await world.settle()
  assert.deepEqual(
    claims(world)[0]?.status?.reservedFor?.map(({ name }) => name),
    ['holder', 'placed'],
  )
})

test('access of administrators is for namespaces that say so', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  const exactly = { deviceClassName: 'gpu', adminAccess: true }
  const adminSpec = { devices: { requests: [{ name: 'gpu', exactly }] } }
  const metadata = { name: 'gpu', namespace: 'default' }
  const apiVersion = 'resource.k8s.io/v1'
  const make = () =>
    world.api.create(kinds.resourceClaimTemplate, {
      apiVersion,
      kind: 'ResourceClaimTemplate',
      metadata,
      spec: { spec: adminSpec },
    })
  const refusal =
    /spec\.devices\.requests\[0\]\.adminAccess: Forbidden: admin access to devices requires the `resource\.kubernetes\.io\/admin-access: true` label on the containing namespace/
  const claim: ResourceClaim = { apiVersion, kind: 'ResourceClaim', metadata, spec: adminSpec }
  assert.throws(() => world.api.create(kinds.resourceClaim, claim), refusal)
  assert.throws(make, refusal)
  const label = (value: string | null) =>
    world.api.patch(kinds.namespace, undefined, 'default', {
      metadata: { labels: { 'resource.kubernetes.io/admin-access': value } },
    })
  label('false')
  assert.throws(make, refusal)
  label('true')
  make()
  createPod(world)
  await world.settle()
  assert.equal(claims(world).length, 1)
  label(null)
  createPod(world, {}, 'late')
  await world.settle()
  assert.equal(claims(world).length, 1)
  const events = world.api.list(kinds.event).map((event) => JSON.stringify(event))
  assert.ok(events.some((text) => text.includes('FailedResourceClaimCreation') && refusal.test(text)))
  label('true')
  await world.settle(60_000)
  assert.equal(claims(world).length, 2, 'it is tried again')
})

test('requests for devices that are no list are refused, not stumbled over', (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  for (const requests of ['gpu', { name: 'gpu' }, 7]) {
    const text = JSON.stringify({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: { name: 'odd', namespace: 'default' },
      spec: { devices: { requests } },
    })
    const claim = JSON.parse(text) as ResourceClaim
    assert.throws(() => world.api.create(kinds.resourceClaim, claim), { name: 'ApiError' })
  }
})
