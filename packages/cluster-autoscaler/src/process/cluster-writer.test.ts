import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import { createKubeClient, isKubeError } from '@tenon/kube'
import { type HttpRequest, type HttpResponse, oneChunk, silentLogger, VirtualClock } from '@tenon/runtime'
import { createClusterWriter, createDryRunWriter } from './cluster-writer.ts'

/** One node and one pod behind an API; each answer may be replaced before it is sent. */
class OneNodeServer {
  node: Node | undefined = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', uid: 'node-uid', resourceVersion: '1' },
  }
  pod: Pod | undefined = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'web', uid: 'pod-uid' },
    spec: { containers: [] },
  }
  readonly requests: HttpRequest[] = []
  /** Another writer comes between reading and writing so many times. */
  overtakings = 0
  eviction: { readonly status: number; readonly reason?: string } = { status: 201 }

  readonly send = async (request: HttpRequest): Promise<HttpResponse> => {
    this.requests.push(request)
    await Promise.resolve()
    if (request.path.endsWith('/eviction')) return status(this.eviction.status, this.eviction.reason)
    if (request.path.includes('/pods/')) return found(this.pod)
    if (request.method === 'GET') return found(this.node)
    if (request.method !== 'PUT' || this.node === undefined) return status(404, 'NotFound')
    const sent = JSON.parse(request.body as string) as Node
    if (this.overtakings-- > 0) this.#bump(this.node)
    if (sent.metadata.resourceVersion !== this.node.metadata.resourceVersion) return status(409, 'Conflict')
    this.#bump(sent)
    return found(this.node)
  }

  #bump(node: Node): void {
    const resourceVersion = String(Number(this.node?.metadata.resourceVersion) + 1)
    this.node = { ...node, metadata: { ...node.metadata, resourceVersion } }
  }

  verbs(): readonly string[] {
    return this.requests.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`)
  }
}

function found(object: KubeObject | undefined): HttpResponse {
  return object === undefined ? status(404, 'NotFound') : json(200, object)
}

function status(code: number, reason = ''): HttpResponse {
  const outcome = code < 300 ? 'Success' : 'Failure'
  return json(code, { kind: 'Status', status: outcome, reason, code, message: reason })
}

function json(code: number, body: object): HttpResponse {
  const headers = { 'content-type': 'application/json' }
  return { status: code, headers, body: oneChunk(JSON.stringify(body)) }
}

function stage() {
  const server = new OneNodeServer()
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock })
  const { signal } = new AbortController()
  return {
    server,
    clock,
    client,
    signal,
    writer: createClusterWriter({ client, requestClient: client, clock }),
  }
}

const cordoned = (node: Node): Node => ({ ...node, spec: { ...node.spec, unschedulable: true } })

async function resultOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.catch((error: unknown) => error)
}

test('a node is replaced by what the newest version is made into, with get and update only', async () => {
  const { server, writer, signal } = stage()
  const written = await writer.updateNode('n', cordoned, signal)
  assert.deepEqual([written?.spec, server.node?.spec], [{ unschedulable: true }, { unschedulable: true }])
  assert.deepEqual(server.verbs(), ['GET n', 'PUT n'])
})

test('what needs no change is not written, and a node that is gone is told', async () => {
  const { server, writer, signal } = stage()
  assert.equal((await writer.updateNode('n', () => undefined, signal))?.metadata.uid, 'node-uid')
  assert.deepEqual(server.verbs(), ['GET n'])
  server.node = undefined
  assert.equal(await writer.updateNode('n', cordoned, signal), undefined)
})

test('a node that another one changed is read again every 750 ms, and given up after 5 s', async () => {
  for (const [overtakings, isWritten, tries] of [
    [3, true, 4],
    [100, false, 7],
  ] as const) {
    const { server, clock, writer, signal } = stage()
    server.overtakings = overtakings
    const ended = resultOf(writer.updateNode('n', cordoned, signal))
    await clock.advance(5000)
    const result = await ended
    assert.equal(isKubeError(result, 'conflict'), !isWritten)
    const puts = server.verbs().filter((verb) => verb === 'PUT n')
    assert.equal(puts.length, tries)
  }
})

test('an eviction says which pod and how long it has; one that is gone is a success', async () => {
  const { server, writer, signal } = stage()
  const pod = server.pod as Pod
  await writer.evict(pod, 600, signal)
  const { deleteOptions } = JSON.parse(server.requests[0]?.body as string) as { deleteOptions: object }
  assert.deepEqual(deleteOptions, { preconditions: { uid: 'pod-uid' }, gracePeriodSeconds: 600 })
  server.eviction = { status: 404, reason: 'NotFound' }
  await writer.evict(pod, 600, signal)
})

test('a pod whose place a new one of the same name took is gone; any other conflict is a failure', async () => {
  const { server, writer, signal } = stage()
  const pod = server.pod as Pod
  server.eviction = { status: 409, reason: 'Conflict' }
  assert.ok(isKubeError(await resultOf(writer.evict(pod, 30, signal)), 'conflict'))
  server.pod = { ...pod, metadata: { ...pod.metadata, uid: 'another' } }
  await writer.evict(pod, 30, signal)
  server.eviction = { status: 429, reason: 'TooManyRequests' }
  assert.ok(isKubeError(await resultOf(writer.evict(pod, 30, signal)), 'tooManyRequests'))
})

test('a dry run answers what is there and writes nothing', async () => {
  const { server, client, signal } = stage()
  const writer = createDryRunWriter(client, silentLogger)
  assert.deepEqual(
    await writer.updateNode('n', cordoned, signal),
    await client.get(kinds.node, { name: 'n' }),
  )
  await writer.evict(server.pod as Pod, 30, signal)
  assert.deepEqual(server.verbs(), ['GET n', 'GET n'])
})
