import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createKubeClient, directKubeConfig } from '@tenon/kube'
import { type HttpRequest, oneChunk, readText, serveHttp, SystemClock, type Transport } from '@tenon/runtime'
import { annotationsOf } from '../leader-annotations.ts'
import { type ControllerReach, isLoopback, reachController } from './controller.ts'

type Answers = (request: HttpRequest) => { readonly status: number; readonly body: object }

const forbidden = (message: string) => ({
  status: 403,
  body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', message, code: 403 },
})

function lease(holder: string, annotations: Readonly<Record<string, string>>): object {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'karpenter-leader-election', namespace: 'tenon', annotations, resourceVersion: '1' },
    spec: { holderIdentity: holder },
  }
}

const listed =
  (...items: readonly object[]): Answers =>
  () => ({
    status: 200,
    body: {
      kind: 'LeaseList',
      apiVersion: 'coordination.k8s.io/v1',
      metadata: { resourceVersion: '1' },
      items,
    },
  })

function connectionTo(answers: Answers, server = 'http://127.0.0.1:1') {
  const config = directKubeConfig({ url: server, source: 'test' })
  const transport: Transport = {
    send: (request) => {
      const { status, body } = answers(request)
      return Promise.resolve({ status, headers: {}, body: oneChunk(JSON.stringify(body)) })
    },
  }
  const clock = new SystemClock()
  return { client: createKubeClient({ transport, clock }), config, clock }
}

async function aController(t: TestContext) {
  const server = await serveHttp(
    (request) =>
      Promise.resolve({
        status: request.path.startsWith('/debug/') ? 200 : 404,
        headers: {},
        body: oneChunk(`page ${request.path}`),
      }),
    { host: '127.0.0.1', port: 0 },
  )
  t.after(() => server.close())
  return server
}

test('EXP-9 a controller is reached by its address, or by that of the lease of a loopback cluster', async (t) => {
  const { url, port } = await aController(t)
  const given = await reachController({ controller: url }, undefined)
  assert.equal(given.kind, 'reached')
  const annotations = annotationsOf('host_1', { port, isInPod: false }, true)
  const found = await reachController({}, connectionTo(listed(lease('host_1', annotations))))
  assert.ok(found.kind === 'reached')
  const reach: ControllerReach = found.reach
  assert.equal(reach.leader, 'host_1')
  assert.equal(await readText(await reach.get('/debug/decisions')), 'page /debug/decisions')
  await assert.rejects(reach.get('/nothing'), /answered 404 to GET \/nothing/)
  const ofUser = await reachController({ token: 'user' }, connectionTo(listed(lease('host_1', annotations))))
  assert.ok(ofUser.kind === 'unreachable', 'PGE-10 the address of the controller asks nobody for rights')
  const remote = connectionTo(listed(lease('host_1', annotations)), 'https://api.example.com')
  const unreachable = await reachController({}, remote)
  assert.ok(unreachable.kind === 'unreachable')
  assert.match(unreachable.message, /run this command there/)
})

test('EXP-10 the lease of the Go Karpenter, or of a Tenon that it followed, is no Tenon', async () => {
  for (const items of [
    [],
    [lease('karpenter-0_abc', {})],
    [lease('karpenter-0_abc', annotationsOf('tenon-0_abc', { port: 8082, isInPod: true }, true))],
    [lease('', annotationsOf('tenon-0_abc', { port: 8082, isInPod: true }, true))],
  ])
    assert.deepEqual(await reachController({}, connectionTo(listed(...items))), { kind: 'noController' })
})

test('EXP-9 without the right to port-forward the right is named', async (t) => {
  const message = 'pods "tenon-0" is forbidden: User "dev" cannot get resource "pods/portforward"'
  const server = createServer().on('upgrade', (_request, socket) => {
    const body = JSON.stringify(forbidden(message).body)
    socket.end(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const leases = listed(
    lease('tenon-0_abc', annotationsOf('tenon-0_abc', { port: 8082, isInPod: true }, true)),
  )
  assert.deepEqual(await reachController({}, connectionTo(leases, url)), {
    kind: 'forbidden',
    right: 'pods/portforward in namespace tenon',
    message,
  })
})

test('EXP-9 without the right to list leases the usual namespaces are looked into', async (t) => {
  const { port } = await aController(t)
  const annotations = annotationsOf('host_1', { port, isInPod: false }, true)
  const answers: Answers = ({ path }) => {
    if (!path.includes('/namespaces/')) return forbidden('leases is forbidden')
    if (path.includes('/namespaces/tenon/')) return { status: 200, body: lease('host_1', annotations) }
    return { status: 404, body: { kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404 } }
  }
  assert.equal((await reachController({}, connectionTo(answers))).kind, 'reached')
  assert.deepEqual(
    await reachController(
      {},
      connectionTo(() => forbidden('leases is forbidden')),
    ),
    {
      kind: 'forbidden',
      right: 'list leases.coordination.k8s.io in all namespaces',
      message: 'leases is forbidden',
    },
  )
})

test('EXP-9 a controller that does not answer is told with its address', async () => {
  const gone = await reachController({ controller: 'http://127.0.0.1:1' }, undefined)
  assert.ok(gone.kind === 'unreachable')
  assert.match(gone.message, /http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/)
  const off = await reachController(
    {},
    connectionTo(listed(lease('a_1', annotationsOf('a_1', undefined, true)))),
  )
  assert.ok(off.kind === 'unreachable')
  assert.match(off.message, /--debug-port/)
})

test('a loopback address is told by its host', () => {
  for (const url of [
    'http://127.0.0.1:8082',
    'https://localhost:6443',
    'http://[::1]:80',
    'http://127.1.2.3',
  ])
    assert.equal(isLoopback(url), true, url)
  for (const url of ['http://127.0.0.1.example.com', 'https://10.0.0.1', 'x', 'http://localhost.example.com'])
    assert.equal(isLoopback(url), false, url)
})
