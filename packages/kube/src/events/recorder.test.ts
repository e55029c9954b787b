import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { oneChunk, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { createKubeClient } from '../client/client.ts'
import type { EventInput } from '../contract.ts'
import { MemoryServer } from '../testing/memory-server.test-support.ts'
import type { EventObject } from './event-object.ts'
import { createEventRecorder, type FlushableEventRecorder } from './recorder.ts'

interface World {
  readonly server: MemoryServer
  readonly clock: VirtualClock
  readonly recorder: FlushableEventRecorder
  readonly events: () => EventObject[]
}

function world(): World {
  const server = new MemoryServer()
  const clock = new VirtualClock()
  const client = createKubeClient({ transport: server, clock })
  const recorder = createEventRecorder({ client, clock, logger: silentLogger, random: new SeededRandom(1) })
  return { server, clock, recorder, events: () => server.all() as EventObject[] }
}

const node: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', uid: 'u' } }
const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'web', uid: 'v' } }

function anEvent(fields: Partial<EventInput> = {}): EventInput {
  return { object: node, type: 'Normal', reason: 'Something', message: 'happened', ...fields }
}

test('an event names its object, in its namespace or in default', async () => {
  const { clock, recorder, events } = world()
  recorder.record(anEvent())
  recorder.record(anEvent({ object: pod, type: 'Warning' }))
  await clock.advance(0)
  const [first, second] = events()
  assert.equal(first?.metadata.namespace, 'default')
  assert.deepEqual(first.involvedObject, { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' })
  assert.deepEqual(first.source, { component: 'karpenter' })
  assert.deepEqual([first.count, first.firstTimestamp], [1, '2026-01-01T00:00:00Z'])
  assert.deepEqual([second?.metadata.namespace, second?.type], ['web', 'Warning'])
})

test('events of the same reason and values are dropped for the window, whatever the object', async () => {
  const { clock, recorder, events } = world()
  recorder.record(anEvent({ dedupe: ['x'] }))
  recorder.record(anEvent({ dedupe: ['x'], object: pod, message: 'other' }))
  recorder.record(anEvent({ dedupe: ['y'], message: 'third' }))
  await clock.advance(119_999)
  recorder.record(anEvent({ dedupe: ['x'], message: 'late' }))
  await clock.advance(1)
  assert.equal(events().length, 2)
  recorder.record(anEvent({ dedupe: ['x'], message: 'again' }))
  await clock.advance(0)
  assert.equal(events().length, 3)
})

test('equal events are counted on the one that is there, and written anew when it is gone', async () => {
  const { server, clock, recorder, events } = world()
  for (let i = 0; i < 3; i++) {
    recorder.record(anEvent())
    await clock.advance(1000)
  }
  assert.deepEqual(
    events().map(({ count, lastTimestamp }) => [count, lastTimestamp]),
    [[3, '2026-01-01T00:00:02Z']],
  )
  server.remove('/api/v1/namespaces/default/events', events()[0]?.metadata.name ?? '')
  recorder.record(anEvent())
  await clock.advance(0)
  assert.deepEqual(
    events().map(({ count }) => count),
    [1],
  )
})

test('one object gets 25 events at once and one per 5 minutes after', async () => {
  const { clock, recorder, events } = world()
  const total = () => events().reduce((sum, { count }) => sum + count, 0)
  for (let i = 0; i < 40; i++) recorder.record(anEvent({ reason: `Reason${i}` }))
  recorder.record(anEvent({ object: pod }))
  await clock.advance(0)
  assert.equal(total(), 26)
  await clock.advance(300_000)
  for (let i = 0; i < 5; i++) recorder.record(anEvent({ reason: `More${i}` }))
  await clock.advance(0)
  assert.equal(total(), 27)
})

test('more than ten variants of a message are combined', async () => {
  const { clock, recorder, events } = world()
  for (let i = 0; i < 14; i++) recorder.record(anEvent({ message: `variant ${i}` }))
  await clock.advance(0)
  assert.equal(events().length, 11)
  const combined = events().at(-1)
  assert.deepEqual([combined?.count, combined?.message], [4, '(combined from similar events): variant 13'])
})

/** An event about pod number `i`, whose values are its own. */
function ofPod(reason: string, i: number): EventInput {
  const object = { ...pod, metadata: { ...pod.metadata, name: `p${i}`, uid: `u${i}` } }
  return anEvent({ object, reason, dedupe: [`u${i}`] })
}

test('OPS-43 of a hundred equal events one is recorded, and another after its window', async () => {
  const { clock, recorder, events } = world()
  const hundred = async (fields: Partial<EventInput>): Promise<void> => {
    for (let i = 0; i < 100; i++) recorder.record(anEvent(fields))
    await clock.advance(1)
  }
  const total = () => events().reduce((sum, { count }) => sum + count, 0)
  await hundred({ dedupe: ['x'] })
  assert.equal(total(), 1)
  await clock.advance(119_000)
  await hundred({ dedupe: ['x'] })
  assert.equal(total(), 1)
  await clock.advance(1000)
  await hundred({ dedupe: ['x'] })
  assert.equal(total(), 2)

  await hundred({ dedupe: ['y'], dedupeTtlMs: 900_000 })
  await clock.advance(890_000)
  await hundred({ dedupe: ['y'], dedupeTtlMs: 900_000 })
  assert.equal(total(), 3)
  await clock.advance(10_000)
  await hundred({ dedupe: ['y'], dedupeTtlMs: 900_000 })
  assert.equal(total(), 4)
})

test('OPS-44 of a hundred nominations at once ten are recorded', async () => {
  const { clock, recorder, events } = world()
  for (let i = 0; i < 100; i++) recorder.record(ofPod('Nominated', i))
  await clock.advance(0)
  assert.equal(events().length, 10)
  await clock.advance(1000)
  for (let i = 100; i < 200; i++) recorder.record(ofPod('Nominated', i))
  await clock.advance(0)
  assert.equal(events().length, 15)
})

test('a nomination that is dropped for its rate opens its window all the same', async () => {
  const { clock, recorder, events } = world()
  for (let i = 0; i < 20; i++) recorder.record(ofPod('Nominated', i))
  await clock.advance(60_000)
  recorder.record(ofPod('Nominated', 19))
  await clock.advance(0)
  assert.equal(events().length, 10)
  await clock.advance(60_000)
  recorder.record(ofPod('Nominated', 19))
  await clock.advance(0)
  assert.equal(events().length, 11)
})

test('OPS-45 five nominations a second are all recorded', async () => {
  const { clock, recorder, events } = world()
  for (let second = 0; second < 3; second++) {
    for (let i = 0; i < 5; i++) recorder.record(ofPod('Nominated', 5 * second + i))
    await clock.advance(1000)
  }
  assert.equal(events().length, 15)
})

test('OPS-46 evictions of a hundred pods are all recorded', async () => {
  const { clock, recorder, events } = world()
  for (let i = 0; i < 100; i++) recorder.record(ofPod('Evicted', i))
  await clock.advance(0)
  assert.equal(events().length, 100)
})

test('windows hold for as many pods as there are, and closed ones are forgotten', async () => {
  const { clock, recorder, events } = world()
  const all = async (): Promise<number> => {
    for (let i = 0; i < 6000; i++) recorder.record(ofPod('FailedScheduling', i))
    await clock.advance(1000)
    return events().reduce((sum, { count }) => sum + count, 0)
  }
  // More at once than are kept waiting to be written.
  assert.equal(await all(), 1000)
  assert.equal(await all(), 1000)
  await clock.advance(120_000)
  assert.equal(await all(), 2000)
})

test('failures are retried a little and then given up; recording never throws', async () => {
  const { server, clock, recorder, events } = world()
  let attempts = 0
  server.fault = () => (attempts++ < 2 ? 'breakAfter' : undefined)
  recorder.record(anEvent())
  await clock.advance(10_000)
  assert.equal(events().length, 1)
  server.fault = () => 'break'
  for (let i = 0; i < 2000; i++)
    recorder.record(anEvent({ object: { ...node, metadata: { name: `n${i}` } } }))
  server.fault = () => ({ status: 403, headers: {}, body: oneChunk('') })
  const before = server.requests.length
  await recorder.flush()
  assert.equal(server.requests.length - before, 1000)
})

test('long names and messages are cut to what a server takes', async () => {
  const { clock, recorder, events } = world()
  recorder.record(
    anEvent({ object: { ...node, metadata: { name: 'n'.repeat(253) } }, message: 'é'.repeat(2000) }),
  )
  await clock.advance(0)
  const [event] = events()
  assert.equal(event?.metadata.name.length, 253)
  assert.equal(event.message, 'é'.repeat(512))
})
