import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { isKubeError, type KubeClient, KubeError, type KubeErrorKind } from '../contract.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import {
  type Answer,
  broken,
  json,
  refusal,
  ScriptedTransport,
  silence,
  text,
} from '../testing/scripted-transport.test-support.ts'
import { createKubeClient } from './client.ts'

const pod = { namespace: 'default', name: 'a' }
const podPath = '/api/v1/namespaces/default/pods/a'
const aPod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...pod, uid: 'u' }, spec: { containers: [] } }

async function failure(promise: Promise<unknown>): Promise<KubeError> {
  const error: unknown = await promise.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof KubeError, String(error))
  return error
}

test('get answers the object, and undefined when there is none', async () => {
  const transport = new ScriptedTransport(json(200, aPod), json(404, refusal(404, 'NotFound')))
  const client = createKubeClient({ transport, clock: new VirtualClock(), userAgent: 'tester/1' })
  assert.deepEqual(await client.get(kinds.pod, pod), aPod)
  assert.equal(await client.get(kinds.pod, pod), undefined)
  assert.equal(transport.requests[0]?.path, podPath)
  assert.equal(transport.requests[0]?.headers['user-agent'], 'tester/1')
})

test('an answer that nobody reads is taken to its end and not looked into', async () => {
  let chunksRead = 0
  async function* body(): AsyncGenerator<string> {
    for (const chunk of ['{no ', 'JSON}\n']) {
      yield chunk
      chunksRead++
    }
  }
  const accepted = () => Promise.resolve({ status: 200, headers: {}, body: body() })
  const transport = new ScriptedTransport(accepted, json(409, refusal(409, 'Conflict')))
  const client = createKubeClient({ transport, clock: new VirtualClock() })
  const patched = () => client.patch(kinds.pod, pod, { metadata: {} }, { isAnswerUnread: true })
  await patched()
  assert.equal(chunksRead, 2)
  assert.equal((await failure(patched())).kind, 'conflict')
})

test('a list reads what is asked of its objects', async () => {
  const items = [{ ...aPod, metadata: { ...aPod.metadata, managedFields: [{ manager: 'm' }] } }]
  const client = createKubeClient({
    transport: new ScriptedTransport(json(200, { items, metadata: { resourceVersion: '1' } })),
    clock: new VirtualClock(),
  })
  const fields = {
    members: { metadata: { members: { managedFields: false }, others: true }, spec: false },
    others: true,
  }
  const listed = await client.list(kinds.pod, { fields })
  assert.deepEqual(listed, [{ apiVersion: 'v1', kind: 'Pod', metadata: aPod.metadata }])
})

test('of what a patch makes of an object is read what is asked for', async () => {
  const after = { ...aPod, metadata: { ...aPod.metadata, resourceVersion: '7' } }
  const client = createKubeClient({
    transport: new ScriptedTransport(json(200, after), json(200, after)),
    clock: new VirtualClock(),
  })
  const fields = {
    members: { metadata: { members: { resourceVersion: true }, others: false } },
    others: false,
  }
  const patched = () => client.patch(kinds.pod, pod, {}, { fields })
  const read = { apiVersion: 'v1', kind: 'Pod', metadata: { ...pod, resourceVersion: '7' } }
  assert.deepEqual(await patched(), read)
  assert.deepEqual(await patched(), read, 'as often as it is asked')
})

test('errors are told apart by reason first, then by code', async () => {
  const cases: [number, string | undefined, KubeErrorKind][] = [
    [409, 'AlreadyExists', 'alreadyExists'],
    [409, 'Conflict', 'conflict'],
    [409, undefined, 'other'],
    [410, 'Expired', 'gone'],
    [422, 'Invalid', 'invalid'],
    [403, 'Forbidden', 'forbidden'],
    [401, 'Unauthorized', 'unauthorized'],
    [404, undefined, 'other'],
    [500, 'InternalError', 'server'],
    [504, undefined, 'server'],
    [418, undefined, 'other'],
  ]
  for (const [code, reason, kind] of cases) {
    const answer = reason === undefined ? text(code, 'plain words') : json(code, refusal(code, reason))
    const client = createKubeClient({ transport: new ScriptedTransport(answer), clock: new VirtualClock() })
    const error = await failure(client.delete(kinds.pod, pod))
    assert.deepEqual([error.kind, error.status, error.reason], [kind, code, reason])
    assert.match(error.message, /^DELETE \/api\/v1\/namespaces\/default\/pods\/a: /)
  }
})

test('a broken connection and an answer that is not JSON are transport errors', async () => {
  for (const [status, answer] of [
    [0, broken()],
    [200, text(200, '<html>')],
  ] as const) {
    const client = createKubeClient({ transport: new ScriptedTransport(answer), clock: new VirtualClock() })
    const error = await failure(client.get(kinds.pod, pod))
    assert.deepEqual([error.kind, error.status], ['transport', status])
  }
})

test('a list is put together from its pages', async () => {
  const server = new MemoryServer()
  for (let i = 0; i < 7; i++) server.put('/api/v1/namespaces/n/pods', `p${i}`)
  const client = createKubeClient({ transport: server, clock: new VirtualClock(), pageLimit: 3 })
  const { items, resourceVersion } = await client.listing(
    kinds.pod,
    { fieldSelector: 'spec.nodeName=' },
    (object) => object,
  )
  assert.equal(items.length, 7)
  assert.equal(resourceVersion, '107')
  assert.deepEqual([items[0]?.apiVersion, items[0]?.kind], ['v1', 'Pod'])
  assert.equal(server.requests.length, 3)
  assert.match(server.requests[2]?.path ?? '', /fieldSelector=spec.nodeName%3D&limit=3&continue=/)
})

test('a list whose page token expires is taken again in one piece', async () => {
  const server = new MemoryServer()
  for (let i = 0; i < 7; i++) server.put('/api/v1/namespaces/n/pods', `p${i}`)
  server.fault = (request) => {
    if (request.path.includes('continue')) server.compact()
    return undefined
  }
  const client = createKubeClient({ transport: server, clock: new VirtualClock(), pageLimit: 3 })
  const items = await client.list(kinds.pod)
  assert.deepEqual(items.map((item) => item.metadata.name).toSorted(), [
    'p0',
    'p1',
    'p2',
    'p3',
    'p4',
    'p5',
    'p6',
  ])
  assert.equal(server.requests.at(-1)?.path, '/api/v1/pods')
})

test('reads wait for Retry-After on 429 and 503, a bounded number of times', async () => {
  for (const status of [429, 503]) {
    const clock = new VirtualClock()
    const busy = text(status, 'busy', { 'retry-after': '3' })
    const transport = new ScriptedTransport(busy, busy, json(200, aPod))
    const got = createKubeClient({ transport, clock }).get(kinds.pod, pod)
    await clock.advance(5_999)
    assert.equal(transport.requests.length, 2)
    await clock.advance(1)
    assert.deepEqual(await got, aPod)
    const stubborn = new ScriptedTransport(busy)
    const failed = failure(createKubeClient({ transport: stubborn, clock }).get(kinds.pod, pod))
    await clock.advance(60_000)
    assert.equal((await failed).retryAfterMs, 3000)
    assert.equal(stubborn.requests.length, 5)
  }
})

test('Retry-After may be a date, or stand in the body only', async () => {
  const clock = new VirtualClock()
  const date = new Date(clock.now() + 4000).toUTCString()
  const transport = new ScriptedTransport(
    text(429, '', { 'retry-after': date }),
    json(429, refusal(429, 'TooManyRequests', { details: { retryAfterSeconds: 2 } })),
    json(200, aPod),
  )
  const got = createKubeClient({ transport, clock }).get(kinds.pod, pod)
  await clock.advance(6_000)
  assert.deepEqual(await got, aPod)
})

test('VER-53 an eviction that a budget refuses with 403 may be repeated, unlike one without the right', async () => {
  const kindFor = async (details: object): Promise<string> => {
    const transport = new ScriptedTransport(json(403, refusal(403, 'Forbidden', details)))
    const client = createKubeClient({ transport, clock: new VirtualClock() })
    return (await failure(client.evict(pod, 'uid'))).kind
  }
  const causes = [{ reason: 'DisruptionBudget', message: 'the budget has no selector' }]
  assert.equal(await kindFor({ details: { causes } }), 'tooManyRequests')
  for (const other of [undefined, {}, [null, 7, { reason: 'Other' }]])
    assert.equal(await kindFor({ details: { causes: other } }), 'forbidden')
})

test('an error tells the fields that the server names, whatever else stands among its causes', async () => {
  const fieldsFor = async (causes: unknown): Promise<readonly string[] | undefined> => {
    const transport = new ScriptedTransport(json(422, refusal(422, 'Invalid', { details: { causes } })))
    const client = createKubeClient({ transport, clock: new VirtualClock() })
    return (await failure(client.create(kinds.pod, aPod))).fields
  }
  const named = [{ field: 'spec.flavor' }, { field: 'spec.flavor', reason: 'x' }, { field: 'spec.labels' }]
  assert.deepEqual(await fieldsFor(named), ['spec.flavor', 'spec.labels'])
  for (const nothing of [undefined, null, 'spec', [], [null, 1, { field: 7 }, { field: '' }]])
    assert.equal(await fieldsFor(nothing), undefined, JSON.stringify(nothing))
})

test('a Retry-After date is measured by the clock of the server that sent it', async () => {
  const clock = new VirtualClock()
  for (const skewMs of [-3_600_000, 3_600_000]) {
    const serverNow = clock.now() + skewMs
    const transport = new ScriptedTransport(
      text(429, '', {
        date: new Date(serverNow).toUTCString(),
        'retry-after': new Date(serverNow + 4000).toUTCString(),
      }),
      json(200, aPod),
    )
    const got = createKubeClient({ transport, clock }).get(kinds.pod, pod)
    await clock.advance(3_999)
    assert.equal(transport.requests.length, 1)
    await clock.advance(1)
    assert.deepEqual(await got, aPod)
  }
})

test('a watch has its whole time-out for each attempt, however long it was told to wait before', async () => {
  const clock = new VirtualClock()
  const busy = text(429, '', { 'retry-after': '20' })
  const transport = new ScriptedTransport(busy, busy, busy, text(200, ''))
  const opened = createKubeClient({ transport, clock }).watch(kinds.pod, {
    resourceVersion: '1',
    timeoutSeconds: 300,
  })
  await clock.advance(60_000)
  for await (const events of await opened) assert.deepEqual([...events], [])
  assert.equal(transport.requests.length, 4)
  const late = failure(
    createKubeClient({ transport: new ScriptedTransport(busy, silence), clock }).watch(kinds.pod, {
      resourceVersion: '1',
      timeoutSeconds: 300,
    }),
  )
  await clock.advance(50_000)
  assert.match((await late).message, /no answer within 30000 ms/)
})

test('a list in one piece may take longer than a page', async () => {
  const clock = new VirtualClock()
  const page = json(200, { metadata: { resourceVersion: '8', continue: 'more' }, items: [] })
  const transport = new ScriptedTransport(page, json(410, refusal(410, 'Expired')), async (request) => {
    await clock.sleep(200_000)
    return json(200, { metadata: { resourceVersion: '9' }, items: [aPod] })(request, undefined)
  })
  const listed = createKubeClient({ transport, clock }).list(kinds.pod)
  await clock.advance(200_000)
  assert.equal((await listed).length, 1)
})

test('writes are repeated only when the server refused them with 429 and Retry-After', async () => {
  const clock = new VirtualClock()
  const repeated = new ScriptedTransport(text(429, '', { 'retry-after': '1' }), json(201, aPod))
  const created = createKubeClient({ transport: repeated, clock }).create(kinds.pod, aPod)
  await clock.advance(1000)
  assert.deepEqual(await created, aPod)
  for (const answer of [text(503, '', { 'retry-after': '1' }), text(429, ''), broken()]) {
    const transport = new ScriptedTransport(answer)
    const failed = failure(createKubeClient({ transport, clock }).create(kinds.pod, aPod))
    await clock.advance(60_000)
    await failed
    assert.equal(transport.requests.length, 1)
  }
})

test('an eviction that a disruption budget refuses is told to the caller at once', async () => {
  const transport = new ScriptedTransport(
    json(429, refusal(429, 'TooManyRequests', { details: { retryAfterSeconds: 10 } }), {
      'retry-after': '10',
    }),
  )
  const error = await failure(
    createKubeClient({ transport, clock: new VirtualClock() }).evict(pod, 'the-uid'),
  )
  assert.ok(isKubeError(error, 'tooManyRequests'))
  assert.equal(transport.requests[0]?.path, `${podPath}/eviction`)
  assert.deepEqual(JSON.parse(transport.requests[0]?.body as string), {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: pod,
    deleteOptions: { preconditions: { uid: 'the-uid' } },
  })
})

test('an eviction says how long the pod may take to end', async () => {
  const transport = new ScriptedTransport(json(201, { kind: 'Status', status: 'Success' }))
  const client = createKubeClient({ transport, clock: new VirtualClock() })
  await client.evict(pod, 'the-uid', { gracePeriodSeconds: 0 })
  const { deleteOptions } = JSON.parse(transport.requests[0]?.body as string) as { deleteOptions: object }
  assert.deepEqual(deleteOptions, { preconditions: { uid: 'the-uid' }, gracePeriodSeconds: 0 })
})

test('an update replaces what was read, and is refused once that has changed', async () => {
  const server = new MemoryServer()
  const client = createKubeClient({ transport: server, clock: new VirtualClock() })
  const nodes = '/api/v1/nodes'
  server.put(nodes, 'n', { apiVersion: 'v1', kind: 'Node', spec: { providerID: 'p', unschedulable: true } })
  const read = await client.get(kinds.node, { name: 'n' })
  assert.ok(read)
  const { unschedulable: _, ...spec } = read.spec ?? {}
  const written = await client.update(kinds.node, { ...read, spec })
  assert.deepEqual([written.spec, written.metadata.uid], [{ providerID: 'p' }, read.metadata.uid])
  assert.deepEqual(server.get(`${nodes}/n`)?.metadata, written.metadata)
  assert.equal((await failure(client.update(kinds.node, read))).kind, 'conflict')
  const { resourceVersion: __, ...unread } = read.metadata
  await assert.rejects(client.update(kinds.node, { ...read, metadata: unread }), /Node n was not read/)
  assert.equal(
    (
      await failure(
        client.update(kinds.pod, { ...aPod, metadata: { ...aPod.metadata, resourceVersion: '1' } }),
      )
    ).kind,
    'notFound',
  )
})

test('a request without an answer fails after its time-out, even if the transport hangs', async () => {
  const clock = new VirtualClock()
  const hangingBody = () =>
    Promise.resolve({
      status: 200,
      headers: {},
      body: { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined) }) },
    })
  for (const answer of [silence, hangingBody]) {
    const client = createKubeClient({
      transport: new ScriptedTransport(answer),
      clock,
      requestTimeoutMs: 5000,
    })
    const failed = failure(client.get(kinds.pod, pod))
    await clock.advance(5000)
    const error = await failed
    assert.equal(error.kind, 'transport')
    assert.match(error.message, /no answer within 5000 ms/)
  }
})

test('a write that timed out after its effect is not repeated by the client', async () => {
  const clock = new VirtualClock()
  const server = new MemoryServer()
  server.fault = () => 'breakAfter'
  const client = createKubeClient({ transport: server, clock })
  const error = await failure(client.create(kinds.pod, aPod))
  assert.equal(error.kind, 'transport')
  assert.equal(server.all().length, 1)
  server.fault = () => undefined
  assert.equal((await failure(client.create(kinds.pod, aPod))).kind, 'alreadyExists')
})

test('an abort ends a request and its waits with the reason of the signal', async () => {
  const clock = new VirtualClock()
  const abort = new AbortController()
  const busy = text(429, '', { 'retry-after': '30' })
  const waiting = createKubeClient({ transport: new ScriptedTransport(busy), clock }).get(kinds.pod, pod, {
    signal: abort.signal,
  })
  const hanging = createKubeClient({ transport: new ScriptedTransport(silence), clock }).get(kinds.pod, pod, {
    signal: abort.signal,
  })
  const both = Promise.allSettled([waiting, hanging])
  await clock.advance(1000)
  const reason = new Error('enough')
  abort.abort(reason)
  for (const result of await both) assert.equal(result.status === 'rejected' && result.reason, reason)
})

test('a rotated token is read again for every request, and once more after 401', async () => {
  const tokens = ['one', 'two', 'three', 'four']
  const transport = new ScriptedTransport(
    json(200, aPod),
    json(401, refusal(401, 'Unauthorized')),
    json(200, aPod),
    json(401, refusal(401, 'Unauthorized')),
  )
  const client = createKubeClient({
    transport,
    clock: new VirtualClock(),
    bearerToken: () => Promise.resolve(tokens.shift() ?? 'last'),
  })
  await client.get(kinds.pod, pod)
  await client.get(kinds.pod, pod)
  assert.equal((await failure(client.get(kinds.pod, pod))).kind, 'unauthorized')
  assert.deepEqual(
    transport.requests.map((request) => request.headers['authorization']),
    ['Bearer one', 'Bearer two', 'Bearer three', 'Bearer four', 'Bearer last'],
  )
})

test('the token bucket spaces requests out beyond its burst', async () => {
  const clock = new VirtualClock()
  const transport = new ScriptedTransport(json(200, aPod))
  const client = createKubeClient({ transport, clock, rate: { perSecond: 2, burst: 3 } })
  const all = Promise.all(Array.from({ length: 7 }, () => client.get(kinds.pod, pod)))
  await clock.advance(0)
  assert.equal(transport.requests.length, 3)
  await clock.advance(1000)
  assert.equal(transport.requests.length, 5)
  await clock.advance(1000)
  await all
  assert.equal(transport.requests.length, 7)
})

test('patches carry their type, subresource and version; deletes their preconditions', async () => {
  const aNode = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }
  const transport = new ScriptedTransport(json(200, aPod), json(200, aNode), json(200, aPod))
  const client = createKubeClient({ transport, clock: new VirtualClock() })
  await client.patch(
    kinds.pod,
    pod,
    { status: { phase: 'Running' } },
    { subresource: 'status', resourceVersion: '7' },
  )
  await client.patch(kinds.node, { name: 'n' }, [{ op: 'remove', path: '/x' }], { kind: 'json' })
  await client.delete(kinds.pod, pod, {
    preconditionUid: 'u',
    gracePeriodSeconds: 0,
    propagationPolicy: 'Background',
  })
  const [first, second, third] = transport.requests
  assert.deepEqual(
    [first?.path, first?.headers['content-type']],
    [`${podPath}/status`, 'application/merge-patch+json'],
  )
  assert.deepEqual(JSON.parse(first?.body as string), {
    status: { phase: 'Running' },
    metadata: { resourceVersion: '7' },
  })
  assert.deepEqual(
    [second?.path, second?.headers['content-type']],
    ['/api/v1/nodes/n', 'application/json-patch+json'],
  )
  assert.equal(second?.body, '[{"op":"remove","path":"/x"}]')
  assert.deepEqual(JSON.parse(third?.body as string), {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: { uid: 'u' },
    gracePeriodSeconds: 0,
    propagationPolicy: 'Background',
  })
})

test('a namespaced object without a namespace is refused before anything is sent', async () => {
  const transport = new ScriptedTransport(json(200, aPod))
  const client = createKubeClient({ transport, clock: new VirtualClock() })
  await assert.rejects(client.get(kinds.pod, { name: 'a' }), TypeError)
  assert.equal(transport.requests.length, 0)
})

test('RPT-34 nothing but what was asked for is believed, whatever the status says', async () => {
  const other = { ...aPod, metadata: { ...pod, name: 'b' } }
  const elsewhere = { ...aPod, metadata: { ...pod, namespace: 'kube-system' } }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } }
  const list = { kind: 'PodList', metadata: { resourceVersion: '1' }, items: [aPod] }
  const wrong: readonly Answer[] = [
    ...['', '{}', '[]', 'null', '"a"', JSON.stringify(aPod).slice(0, 30), '<html></html>'].map((body) =>
      text(200, body, { 'content-type': 'application/json' }),
    ),
    text(200, JSON.stringify(aPod), { 'content-type': 'text/html; charset=utf-8' }),
    text(302, '', { location: 'https://login.example.com/' }),
    text(204, ''),
    text(404, '404 page not found', { 'content-type': 'text/plain' }),
    json(200, { kind: 'Status', status: 'Failure' }),
    json(200, node),
  ]
  const lists = [
    json(200, { kind: 'PodList', metadata: {}, items: [] }),
    json(200, { kind: 'PodList', metadata: { resourceVersion: '1' } }),
    json(200, { kind: 'NodeList', metadata: { resourceVersion: '1' }, items: [] }),
    json(200, { kind: 'PodList', metadata: { resourceVersion: '1' }, items: [{}] }),
    json(200, { kind: 'PodList', metadata: { resourceVersion: '1' }, items: [node] }),
  ]
  const objects = [json(200, other), json(200, elsewhere), json(200, list)]
  const aboutAnother = json(404, refusal(404, 'NotFound', { details: { name: 'b', kind: 'pods' } }))
  const calls: readonly [string, readonly Answer[], (client: KubeClient) => Promise<unknown>][] = [
    ['get', [...wrong, ...objects, aboutAnother], (client) => client.get(kinds.pod, pod)],
    ['list', [...wrong, ...lists], (client) => client.list(kinds.pod, { namespace: 'default' })],
    ['create', [...wrong, ...objects], (client) => client.create(kinds.pod, aPod)],
    ['patch', [...wrong, ...objects, aboutAnother], (client) => client.patch(kinds.pod, pod, {})],
    [
      'update',
      [...wrong, ...objects, aboutAnother],
      (client) => client.update(kinds.pod, { ...aPod, metadata: { ...aPod.metadata, resourceVersion: '1' } }),
    ],
    ['delete', [...wrong, ...objects, aboutAnother], (client) => client.delete(kinds.pod, pod)],
    ['evict', [...wrong, json(201, aPod)], (client) => client.evict(pod, 'u')],
    ['version', wrong.slice(0, 8), (client) => client.serverVersion()],
  ]
  for (const [name, answers, call] of calls) {
    for (const [i, answer] of answers.entries()) {
      const client = createKubeClient({ transport: new ScriptedTransport(answer), clock: new VirtualClock() })
      const { kind } = await failure(call(client))
      assert.ok(kind === 'transport' || kind === 'other', `${name} ${i}: ${kind}`)
    }
  }
})

test('RPT-34 a later page of a list that cannot be read does not end the list', async () => {
  const first = json(200, { metadata: { resourceVersion: '8', continue: 'more' }, items: [aPod] })
  for (const body of ['', '{}', 'null', '[]']) {
    const transport = new ScriptedTransport(first, text(200, body))
    const client = createKubeClient({ transport, clock: new VirtualClock() })
    assert.equal((await failure(client.list(kinds.pod))).kind, 'transport')
  }
})

test('RPT-34 a watch is no other watch, no redirect and no page for people', async () => {
  const wrong = [
    text(302, '', { location: 'https://login.example.com/' }),
    text(200, '<html>\n', { 'content-type': 'text/html' }),
    text(200, `${JSON.stringify({ type: 'ADDED', object: { kind: 'Node', metadata: { name: 'n' } } })}\n`),
    text(200, `${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Pod', metadata: {} } })}\n`),
    text(200, 'null\n'),
  ]
  for (const answer of wrong) {
    const client = createKubeClient({ transport: new ScriptedTransport(answer), clock: new VirtualClock() })
    const followed = async () => {
      const rows = await client.watch(kinds.pod, { resourceVersion: '1', timeoutSeconds: 300 })
      for await (const row of rows) for (const _ of row);
    }
    assert.equal((await failure(followed())).kind, 'transport')
  }
})
