import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestServer } from './api-server.test-support.ts'

const path = '/api/v1/namespaces/default/services'

function aService(name: string, spec: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports: [{ port: 80 }], ...spec },
  }
}

test('RPT-62 every service gets a cluster address and node ports of its own', async () => {
  const server = new TestServer()
  const addresses = new Set<string>()
  const ports = new Set<number>()
  const count = 600
  for (let index = 0; index < count; index++) {
    const { status, body } = await server.call('POST', path, aService(`s-${index}`, { type: 'LoadBalancer' }))
    assert.equal(status, 201, body.message)
    addresses.add(body.spec.clusterIP)
    ports.add(body.spec.ports[0].nodePort)
  }
  assert.deepEqual([addresses.size, ports.size], [count, count])
})

test('RPT-62 an address or a port that another service has is refused in the words of Kubernetes', async () => {
  const server = new TestServer()
  const first = await server.call('POST', path, aService('first', { type: 'NodePort' }))
  const { clusterIP, ports } = first.body.spec
  const address = await server.call('POST', path, aService('second', { clusterIP }))
  assert.equal(address.status, 422)
  assert.match(
    address.body.message,
    new RegExp(
      `spec.clusterIPs: Invalid value: \\["${clusterIP}"\\]: failed to allocate IP ${clusterIP}: provided IP is already allocated`,
    ),
  )
  const outside = await server.call('POST', path, aService('second', { clusterIP: '192.0.2.1' }))
  assert.match(outside.body.message, /the provided IP \(192.0.2.1\) is not in the valid range/)
  const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: ports[0].nodePort }] }
  const port = await server.call('POST', path, aService('second', spec))
  assert.equal(port.status, 422)
  assert.match(
    port.body.message,
    /spec.ports\[0\].nodePort: Invalid value: \d+: provided port is already allocated/,
  )
})

test('RPT-62 external traffic fields follow the type of a service', async () => {
  const server = new TestServer()
  const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }
  const { body } = await server.call('POST', path, aService('web', local))
  assert.equal(body.spec.allocateLoadBalancerNodePorts, true)
  assert.ok(body.spec.healthCheckNodePort >= 30_000)
  assert.notEqual(body.spec.healthCheckNodePort, body.spec.ports[0].nodePort)
  const plain = await server.merge(`${path}/web`, { spec: { type: 'ClusterIP' } })
  assert.equal(plain.status, 200, plain.body.message)
  for (const field of ['externalTrafficPolicy', 'healthCheckNodePort', 'allocateLoadBalancerNodePorts'])
    assert.equal(plain.body.spec[field], undefined, field)
  assert.equal(plain.body.spec.ports[0].nodePort, undefined)
  assert.equal(plain.body.spec.clusterIP, body.spec.clusterIP)
  const named = await server.merge(`${path}/web`, {
    spec: { type: 'ExternalName', externalName: 'example.com' },
  })
  assert.equal(named.status, 200, named.body.message)
  assert.equal(named.body.spec.clusterIP, undefined)
  const again = await server.merge(`${path}/web`, { spec: { type: 'ClusterIP', externalName: null } })
  assert.match(again.body.spec.clusterIP, /^10\.96\./)
  const without = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }
  const bare = await server.call('POST', path, aService('bare', without))
  assert.equal(bare.body.spec.ports[0].nodePort, undefined)
})

test('RPT-62 a port keeps its node port when ports are reordered', async () => {
  const server = new TestServer()
  const ports = [
    { name: 'a', port: 80 },
    { name: 'b', port: 443 },
  ]
  const { body } = await server.call('POST', path, aService('web', { type: 'NodePort', ports }))
  const before = new Map<number, number>(
    body.spec.ports.map((each: { port: number; nodePort: number }) => [each.port, each.nodePort]),
  )
  const changed = await server.merge(`${path}/web`, { spec: { ports: ports.toReversed() } })
  for (const { port, nodePort } of changed.body.spec.ports) assert.equal(nodePort, before.get(port))
})
