import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Service, workloads } from '../objects/workloads.ts'
import { startWorld, type World } from '../world.test-support.ts'

function open(t: TestContext): World {
  const world = startWorld({ nodes: [] })
  t.after(() => world.stop())
  return world
}

function create(world: World, name: string, spec: Partial<Service['spec']> = {}): Service {
  return world.api.create<Service>(workloads.service, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80 }], ...spec },
  })
}

const service = (world: World, name: string) => world.api.get(workloads.service, 'default', name)
const address = (world: World, name: string) => service(world, name)?.status?.loadBalancer?.ingress?.[0]?.ip

test('RPT-62 a LoadBalancer service gets an address that no other has', async (t) => {
  const world = open(t)
  for (const name of ['web', 'api']) create(world, name)
  await world.settle()
  const [web, api] = [address(world, 'web'), address(world, 'api')]
  assert.match(web ?? '', /^\d+\.\d+\.\d+\.\d+$/)
  assert.match(api ?? '', /^\d+\.\d+\.\d+\.\d+$/)
  assert.notEqual(web, api)
  assert.deepEqual(world.events('EnsuredLoadBalancer'), ['Ensured load balancer', 'Ensured load balancer'])
  world.restart()
  await world.settle()
  assert.deepEqual([address(world, 'web'), address(world, 'api')], [web, api])
  world.api.delete(workloads.service, 'default', 'web')
  await world.settle()
  assert.equal(service(world, 'web'), undefined)
  create(world, 'next')
  await world.settle()
  assert.equal(address(world, 'next'), web)
})

test('RPT-62 a service keeps the address it asks for, and loses it with its type', async (t) => {
  const world = open(t)
  create(world, 'web', { loadBalancerIP: '203.0.113.77' })
  await world.settle()
  assert.equal(address(world, 'web'), '203.0.113.77')
  world.api.patch(workloads.service, 'default', 'web', { spec: { type: 'ClusterIP' } })
  await world.settle()
  assert.equal(address(world, 'web'), undefined)
  assert.equal(service(world, 'web')?.metadata.finalizers, undefined)
})

test('RPT-62 a load balancer of another class, and a service of another type, get none', async (t) => {
  const world = open(t)
  create(world, 'other', { loadBalancerClass: 'example.com/own' })
  create(world, 'plain', { type: 'NodePort' })
  await world.settle()
  assert.deepEqual([address(world, 'other'), address(world, 'plain')], [undefined, undefined])
})
