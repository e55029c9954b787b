import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import { createEventRecorder, createKubeClient } from '@tenon/kube'
import { type HttpRequest, oneChunk, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { createEventSink } from './event-sink.ts'

const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'web', uid: 'u' } }
const configMap: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'status', namespace: 'kube-system' },
}

interface Written {
  readonly reason?: string
  readonly message?: string
  readonly count?: number
  readonly source?: { readonly component: string }
  readonly involvedObject?: { readonly kind: string }
}

function stage({ statusObject = (): KubeObject | undefined => configMap, recordsDuplicates = false } = {}) {
  const written: Written[] = []
  const clock = new VirtualClock()
  const send = async ({ method, path, body }: HttpRequest) => {
    await Promise.resolve()
    const event = JSON.parse(body as string) as Written & KubeObject
    written.push(event)
    const [, namespace = '', last = ''] = /namespaces\/([^/]+)\/events\/?(.*)/.exec(path) ?? []
    const name = method === 'POST' ? event.metadata.name : last
    const answer = { ...event, apiVersion: 'v1', kind: kinds.event.kind, metadata: { namespace, name } }
    const headers = { 'content-type': 'application/json' }
    return { status: 200, headers, body: oneChunk(JSON.stringify(answer)) }
  }
  const recorder = createEventRecorder({
    client: createKubeClient({ transport: { send }, clock }),
    clock,
    logger: silentLogger,
    random: new SeededRandom(1),
    component: 'cluster-autoscaler',
    ...(!recordsDuplicates && { perObject: { perSecond: 100, burst: 1000 } }),
  })
  return { clock, written, sink: createEventSink({ recorder, statusObject, recordsDuplicates }) }
}

test('CAS-104 the same about a pod is told once in five minutes', async () => {
  const { clock, written, sink } = stage()
  for (let minute = 0; minute < 11; minute++) {
    sink.object(pod, 'Normal', 'NotTriggerScaleUp', `no room, loop ${minute}`)
    await clock.advance(60_000)
  }
  assert.deepEqual(
    written.map(({ message }) => message),
    ['no room, loop 0', 'no room, loop 5', 'no room, loop 10'],
  )
  assert.equal(written[0]?.source?.component, 'cluster-autoscaler')
  sink.object(pod, 'Normal', 'TriggeredScaleUp', 'another reason')
  await clock.advance(60_000)
  assert.equal(written.at(-1)?.message, 'another reason')
})

test('of events about the whole each text is told, however many there are', async () => {
  const { clock, written, sink } = stage()
  for (let index = 0; index < 60; index++) sink.status('Normal', 'ScaleDownEmpty', `removing node ${index}`)
  sink.status('Normal', 'ScaleDownEmpty', 'removing node 7')
  await clock.advance(60_000)
  assert.equal(written.length, 60)
  assert.equal(written[0]?.involvedObject?.kind, 'ConfigMap')
})

test('CAS-103 without a status ConfigMap there are no events on it, but all others', async () => {
  const { clock, written, sink } = stage({ statusObject: () => undefined })
  sink.status('Normal', 'ScaledUpGroup', 'larger')
  sink.object(pod, 'Normal', 'TriggeredScaleUp', 'larger')
  await clock.advance(60_000)
  assert.deepEqual(
    written.map(({ involvedObject }) => involvedObject?.kind),
    ['Pod'],
  )
})

test('with duplicates asked for, the same is counted each time', async () => {
  const { clock, written, sink } = stage({ recordsDuplicates: true })
  for (let loop = 0; loop < 3; loop++) sink.object(pod, 'Normal', 'NotTriggerScaleUp', 'no room')
  await clock.advance(60_000)
  assert.deepEqual(
    written.map(({ count }) => count),
    [1, 2, 3],
  )
})
