import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import { type ReplicaSet, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

interface Slice extends KubeObject {
  readonly endpoints?: readonly {
    readonly conditions: { readonly ready: boolean }
    readonly targetRef: { readonly name: string }
  }[]
  readonly ports?: readonly { readonly port: number }[]
}

function create(world: World, replicas: number): void {
  const metadata = { name: 'web', namespace: 'default' }
  world.api.create(workloads.service, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http', protocol: 'TCP' }] },
  })
  const pod = template('web')
  const [container] = pod.spec.containers
  const ports = [{ name: 'http', containerPort: 8080 }]
  const containers = [{ name: 'main', ...container, ports }]
  const spec = {
    replicas,
    selector: { matchLabels: { app: 'web' } },
    template: { ...pod, spec: { containers } },
  }
  world.api.create(workloads.replicaSet, { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata, spec })
}

const slices = (world: World) => world.api.list(workloads.endpointSlice, { namespace: 'default' }) as Slice[]
const sizes = (world: World) => slices(world).map((slice) => slice.endpoints?.length ?? 0)

test('a Service publishes its ready pods, a hundred per slice', async () => {
  const world = startWorld()
  create(world, 250)
  await world.settle(20_000)
  assert.deepEqual(
    sizes(world).sort((a, b) => b - a),
    [100, 100, 50],
  )
  assert.equal(slices(world)[0]?.ports?.[0]?.port, 8080)
  assert.ok(slices(world).every((slice) => slice.endpoints?.every((endpoint) => endpoint.conditions.ready)))
  world.stop()
})

test('a pod that goes changes its own slice only, and the last slice stays empty', async () => {
  const world = startWorld()
  create(world, 250)
  await world.settle(20_000)
  const versions = () =>
    new Map(slices(world).map((slice) => [slice.metadata.name, slice.metadata.resourceVersion]))
  const before = versions()
  const [pod] = world.pods()
  world.readyAfterMs = () => -1
  world.api.delete(kinds.pod, 'default', pod?.metadata.name ?? '', { gracePeriodSeconds: 0 })
  await world.settle()
  assert.equal([...versions()].filter(([name, version]) => before.get(name) !== version).length, 1)
  const set = world.api.get(workloads.replicaSet, 'default', 'web') as ReplicaSet
  world.api.update(workloads.replicaSet, { ...set, spec: { ...set.spec, replicas: 0 } })
  await world.settle(20_000)
  assert.deepEqual(sizes(world), [0])
  world.stop()
})

test('a deleted Service takes its slices and Endpoints with it', async () => {
  const world = startWorld()
  create(world, 3)
  await world.settle()
  world.api.delete(workloads.service, 'default', 'web', { propagationPolicy: 'Background' })
  await world.settle()
  assert.equal(slices(world).length, 0)
  assert.equal(world.api.get(workloads.endpoints, 'default', 'web'), undefined)
  world.stop()
})

test('a pod that is not ready is listed as not ready', async () => {
  const world = startWorld()
  create(world, 1)
  await world.settle()
  const [pod] = world.pods()
  const conditions = [{ type: 'Ready', status: 'False' }]
  world.api.updateStatus(kinds.pod, { ...pod, status: { ...pod?.status, conditions } } as never)
  await world.settle()
  assert.equal(slices(world)[0]?.endpoints?.[0]?.conditions.ready, false)
  const { subsets } = world.api.get(workloads.endpoints, 'default', 'web') as KubeObject & {
    subsets: { addresses?: unknown[]; notReadyAddresses?: unknown[] }[]
  }
  assert.equal(subsets[0]?.addresses, undefined)
  assert.equal(subsets[0]?.notReadyAddresses?.length, 1)
  world.stop()
})
