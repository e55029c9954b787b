import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { integerBetween, type Random, SeededRandom, VirtualClock } from '@tenon/runtime'
import type { ReadFields } from '../contract.ts'
import { type Answer, ScriptedTransport } from '../testing/scripted-transport.test-support.ts'
import { createKubeClient } from './client.ts'
import { FieldReader } from './read-fields.ts'

const names = ['a', 'b', 'spec', 'f:x', 'k:{"n":"]},"}', 'é', 'tab\t', '']
const texts = ['', 'plain', '"', '\\', '\\"', ']},"spec":{', '{[', 'ü\u{1f600}', '\u0000']

function aValue(random: Random, depth: number): unknown {
  const pick = integerBetween(random, 0, depth > 0 ? 6 : 3)
  const some = <T>(make: (index: number) => T): T[] =>
    Array.from({ length: integerBetween(random, 0, 4) }, (_, index) => make(index))
  if (pick === 0) return texts[integerBetween(random, 0, texts.length - 1)]
  if (pick === 1) return integerBetween(random, -1000, 1000) / 8
  if (pick === 2) return null
  if (pick === 3) return pick % 2 === 1
  if (pick === 4) return some(() => aValue(random, depth - 1))
  return Object.fromEntries(some(() => [aName(random), aValue(random, depth - 1)]))
}

const aName = (random: Random) => names[integerBetween(random, 0, names.length - 1)] ?? ''

function someFields(random: Random, depth: number): ReadFields {
  const members = Array.from({ length: integerBetween(random, 0, 4) }, (): [string, boolean | ReadFields] => {
    const pick = integerBetween(random, 0, depth > 0 ? 3 : 1)
    return [aName(random), pick > 1 ? someFields(random, depth - 1) : pick === 1]
  })
  // Names in another spelling than the text's are not found, so only such are omitted as have one spelling.
  const plain = members.filter(([name]) => JSON.stringify(name) === `"${name}"`)
  return { members: Object.fromEntries(plain), others: integerBetween(random, 0, 2) > 0 }
}

/** What the fields leave of a value. */
function part(value: unknown, { members, others }: ReadFields): unknown {
  if (Array.isArray(value)) return value.map((each) => part(each, { members, others }))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => {
      const wanted = Object.hasOwn(members, name) ? (members[name] ?? others) : others
      if (wanted === false) return []
      return [[name, wanted === true ? each : part(each, wanted)]]
    }),
  )
}

test('a text is read as if it had been parsed, and then what is not wanted left out', () => {
  const random = new SeededRandom('read-fields')
  for (let round = 0; round < 1500; round++) {
    const value = aValue(random, 5)
    const fields = someFields(random, 4)
    const reader = new FieldReader(fields)
    for (const indent of [undefined, 2]) {
      const text = JSON.stringify(value, undefined, indent)
      assert.deepEqual(JSON.parse(reader.read(Buffer.from(text))), part(value, fields), text)
    }
  }
})

test('what is not JSON stays what it is, for the parser to refuse', () => {
  const reader = new FieldReader({ members: { a: false }, others: true })
  for (const text of [
    '',
    '{',
    '{"a"',
    '{"a":',
    '{"a":"',
    '{"b":1,"a":[',
    '{"b" 1}',
    '[{"a":1}',
    '{"b":1 "a":2}',
  ])
    assert.equal(reader.read(Buffer.from(text)), text)
  assert.equal(reader.read(Buffer.from('{"a":1}')), '{}')
})

const pod = (name: string, resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', resourceVersion, managedFields: [{ manager: 'é"]},"spec":' }] },
  spec: { containers: [{ name: 'ü', env: [{ name: 'A', value: '{' }] }] },
})
const fields: ReadFields = {
  members: {
    metadata: { members: { managedFields: false }, others: true },
    spec: { members: { containers: { members: { name: true }, others: false } }, others: false },
  },
  others: false,
}
const read = (name: string, resourceVersion: string) => ({
  metadata: { name, namespace: 'default', resourceVersion },
  spec: { containers: [{ name: 'ü' }] },
})

test('a watch is read in part however its bytes are cut, its errors whole', async () => {
  const gone = { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message: 'too old' }
  const lines = [
    { type: 'ADDED', object: pod('a', '1') },
    { type: 'DELETED', object: pod('b', '2') },
    { type: 'BOOKMARK', object: { metadata: { resourceVersion: '3' } } },
    { type: 'ERROR', object: gone },
  ]
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n\n`).join(''))
  for (let size = 1; size <= bytes.length; size = size < 8 ? size + 1 : size * 2) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      Uint8Array.from(bytes.subarray(index * size, (index + 1) * size)),
    )
    const transport = new ScriptedTransport(bytesOf(200, chunks))
    const client = createKubeClient({ transport, clock: new VirtualClock() })
    const events: unknown[] = []
    const watch = await client.watch(kinds.pod, { resourceVersion: '0', timeoutSeconds: 60, fields })
    await assert.rejects(
      async () => {
        for await (const row of watch) for (const event of row) events.push(event)
      },
      { kind: 'gone', message: /too old/ },
    )
    assert.deepEqual(events, [
      { kind: 'added', object: read('a', '1') },
      { kind: 'deleted', object: read('b', '2') },
      { kind: 'bookmark', resourceVersion: '3', isInitialEnd: false },
    ])
  }
})

test('events that have come together are a row where they are gathered, and one by one everywhere else', async () => {
  const lines = ['1', '2'].map((version) => ({ type: 'MODIFIED', object: pod('a', version) }))
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const rowsWith = async (options: { readonly gatherMs?: number }) => {
    const client = createKubeClient({
      transport: new ScriptedTransport(bytesOf(200, [bytes])),
      clock: new VirtualClock(),
    })
    const rows: unknown[] = []
    const watch = await client.watch(kinds.pod, { resourceVersion: '0', timeoutSeconds: 60, ...options })
    for await (const row of watch) rows.push(Array.from(row, ({ kind }) => kind))
    return rows
  }
  assert.deepEqual(await rowsWith({ gatherMs: 50 }), [['modified', 'modified']])
  assert.deepEqual(await rowsWith({}), [['modified'], ['modified']])
})

test('the items of a list are read in part, its version and the refusal of a list whole', async () => {
  const page = { kind: 'PodList', metadata: { resourceVersion: '9' }, items: [pod('a', '1'), pod('b', '2')] }
  const refusal = { kind: 'Status', status: 'Failure', code: 403, reason: 'Forbidden', message: 'not you' }
  const transport = new ScriptedTransport(
    bytesOf(200, [Buffer.from(JSON.stringify(page))]),
    bytesOf(403, [Buffer.from(JSON.stringify(refusal))]),
  )
  const client = createKubeClient({ transport, clock: new VirtualClock() })
  const keep = (object: unknown) => object
  const { items, resourceVersion } = await client.listing(kinds.pod, { fields }, keep)
  assert.deepEqual(
    items,
    [read('a', '1'), read('b', '2')].map((item) => ({ ...item, apiVersion: 'v1', kind: 'Pod' })),
  )
  assert.equal(resourceVersion, '9')
  await assert.rejects(client.listing(kinds.pod, { fields }, keep), { kind: 'forbidden', message: /not you/ })
})

function bytesOf(status: number, chunks: readonly Uint8Array[]): Answer {
  async function* body(): AsyncGenerator<Uint8Array> {
    yield* chunks
  }
  return () => Promise.resolve({ status, headers: {}, body: body() })
}
