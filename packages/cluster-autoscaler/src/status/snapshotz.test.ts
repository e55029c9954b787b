import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '@tenon/api'
import { eventLoopTurns, type HttpRequest, readText } from '@tenon/runtime'
import { autoscalerPages } from './pages.ts'
import { type DebuggingSnapshot, SnapshotzServer } from './snapshotz.ts'

const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }
const snapshot: DebuggingSnapshot = {
  nodes: Array.from({ length: 120 }, () => ({ node, pods: [] })),
  unscheduledPodsCanBeScheduled: [],
  holds: new Map([['g', { forbids: 'all', reason: 'its Cluster is paused' }]]),
  templates: new Map([['constructor', { node, pods: [] }]]),
  startMs: Date.parse('2026-01-01T00:00:00Z'),
  endMs: Date.parse('2026-01-01T00:00:01Z'),
}

function stage({ isServed = true } = {}) {
  const ending = new AbortController()
  const server = new SnapshotzServer(eventLoopTurns, ending.signal)
  const pages = autoscalerPages({
    metrics: async () => await Promise.resolve('a 1\n'),
    health: { answer: () => ({ isHealthy: false, text: 'unhealthy: last activity 11m0s ago' }) },
    ...(isServed && { snapshotz: server.handle }),
  })
  const get = async (path: string, signal?: AbortSignal, method = 'GET') => {
    const request: HttpRequest = { method, path, headers: {} }
    const { status, body, headers } = await pages(request, signal)
    return { status, text: await readText(body), type: headers['content-type'] }
  }
  return { server, ending, get }
}

test('CAS-110 without the flag there is no /snapshotz', async () => {
  assert.equal((await stage({ isServed: false }).get('/snapshotz')).status, 404)
})

test('CAS-110 of two requests at the same time the second is refused', async () => {
  const { server, get } = stage()
  assert.ok(!server.isWanted)
  const first = get('/snapshotz')
  assert.ok(server.isWanted)
  assert.equal((await get('/snapshotz')).status, 429)
  server.provide(snapshot)
  const { status, text, type } = await first
  assert.deepEqual([status, type, server.isWanted], [200, 'application/json', false])
  const parsed = JSON.parse(text) as Record<string, unknown>
  assert.deepEqual(Object.keys(parsed), [
    'NodeList',
    'UnscheduledPodsCanBeScheduled',
    'StartTimestamp',
    'EndTimestamp',
    'TemplateNodes',
    'NodeGroupHolds',
  ])
  assert.equal((parsed['NodeList'] as unknown[]).length, 120)
  assert.deepEqual(JSON.parse(JSON.stringify(parsed['TemplateNodes'])), {
    constructor: { Node: node, Pods: [] },
  })
  assert.deepEqual(parsed['NodeGroupHolds'], { g: { Forbids: 'all', Reason: 'its Cluster is paused' } })
  // Nobody waits any more.
  server.provide(snapshot)
})

test('a loop that could not collect is told with 500', async () => {
  const { server, get } = stage()
  const asked = get('/snapshotz')
  server.fail('the cloud did not answer', 0)
  const { status, text } = await asked
  assert.equal(status, 500)
  assert.equal((JSON.parse(text) as { Error: string }).Error, 'the cloud did not answer')
})

test('who goes away, or asks a process that stops, gets 503', async () => {
  const { server, ending, get } = stage()
  const client = new AbortController()
  const left = get('/snapshotz', client.signal)
  client.abort()
  assert.equal((await left).status, 503)
  assert.ok(!server.isWanted)
  const waiting = get('/snapshotz')
  ending.abort()
  assert.equal((await waiting).status, 503)
  assert.equal((await get('/snapshotz')).status, 503)
})

test('metrics and health are served, everything else is not', async () => {
  const { get } = stage()
  assert.deepEqual(await get('/metrics'), {
    status: 200,
    text: 'a 1\n',
    type: 'text/plain; version=0.0.4; charset=utf-8',
  })
  const { status, text } = await get('/health-check?x=1')
  assert.deepEqual([status, text], [500, 'unhealthy: last activity 11m0s ago'])
  assert.equal((await get('/debug/pprof/heap')).status, 404)
  assert.equal((await get('/')).status, 404)
  assert.equal((await get('/metrics', undefined, 'POST')).status, 405)
})
