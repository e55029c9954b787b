import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import { silentLogger } from '@tenon/runtime'
import { startWorld, type World } from '../world.test-support.ts'
import { EventRecorder } from './event-recorder.ts'

interface RecordedEvent extends KubeObject {
  readonly reason: string
  readonly message: string
  readonly count: number
  readonly firstTimestamp: string
  readonly lastTimestamp: string
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid: string }
}

function setUp(): {
  world: World
  recorder: EventRecorder
  about: KubeObject
  events: () => RecordedEvent[]
} {
  const world = startWorld({ nodes: [] })
  const metadata = { name: 'thing', namespace: 'default' }
  const about = world.api.create(kinds.configMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  const recorder = new EventRecorder(world.api, world.clock, silentLogger)
  const events = () =>
    (world.api.list(kinds.event) as RecordedEvent[]).filter((event) => event.involvedObject.name === 'thing')
  return { world, recorder, about, events }
}

test('the same event again raises its count', async () => {
  const { world, recorder, about, events } = setUp()
  for (let i = 0; i < 3; i++) {
    recorder.record('test', about, 'Normal', 'Happened', 'it happened')
    await world.clock.advance(1000)
  }
  const [event] = events()
  assert.equal(events().length, 1)
  assert.equal(event?.count, 3)
  assert.equal(event?.involvedObject.uid, about.metadata.uid)
  assert.notEqual(event?.firstTimestamp, event?.lastTimestamp)
  world.stop()
})

test('a flood of similar events is combined, then dropped', () => {
  const { world, recorder, about, events } = setUp()
  for (let i = 0; i < 1000; i++) recorder.record('test', about, 'Normal', 'Created', `created ${i}`)
  assert.equal(events().length, 11)
  const combined = events().filter((event) => event.message.startsWith('(combined from similar events): '))
  assert.deepEqual(
    combined.map((event) => event.count),
    [15],
  )
  world.stop()
})

test('controllers told to record no Events write none', async () => {
  const world = startWorld({ nodes: [], settings: { recordsEvents: false } })
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'a', namespace: 'default' },
    spec: { replicas: 2, selector: { matchLabels: { app: 'a' } }, template },
  }
  world.api.create(
    { group: 'apps', version: 'v1', kind: 'Deployment', plural: 'deployments', namespaced: true },
    deployment,
  )
  await world.clock.advance(5000)
  assert.equal(world.api.list(kinds.pod).length, 2)
  assert.deepEqual(world.api.list(kinds.event), [])
  world.stop()
})
