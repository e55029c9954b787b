import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { PodLog } from './pod-log.ts'
import type { TraceRecord } from './records.ts'
import { emptyTraceState, traceStateAfter } from './trace-state.ts'

const startMs = Date.UTC(2026, 0, 1)

function aPod(uid: string, more: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `web-${uid}`,
      namespace: 'default',
      uid,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { app: 'web' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'set', controller: true },
      ],
      ...more,
    },
    spec: { containers: [{ name: 'app', image: 'web:1', resources: { requests: { cpu: '1' } } }] },
  }
}

function aLog() {
  const records: TraceRecord[] = []
  const clock = { nowMs: startMs, now: () => clock.nowMs }
  const sink = { write: (record: TraceRecord) => records.push(record) }
  return { records, clock, log: new PodLog(sink, clock, emptyTraceState()), sink }
}

const kindsOf = (records: readonly TraceRecord[]): readonly string[] => records.map(({ kind }) => kind)

const evicted = { conditions: [{ type: 'DisruptionTarget', status: 'True' }] }
const goingAt = '2026-01-01T00:01:00Z'

test('EXP-16 pods of one shape share it, and each comes and ends once', () => {
  const { records, log } = aLog()
  log.seen(aPod('a'))
  log.seen(aPod('b'))
  log.seen(aPod('a'))
  log.seen(aPod('a', { deletionTimestamp: goingAt }))
  log.gone(aPod('a', { deletionTimestamp: goingAt }))
  assert.deepEqual(kindsOf(records), ['shape', 'podCame', 'podCame', 'podEnded'])
})

test('EXP-16 a pod that is evicted and put back is one pod, and one that is not has ended', () => {
  const { records, log, clock } = aLog()
  log.seen(aPod('a'))
  log.seen(aPod('b'))
  log.seen({ ...aPod('a', { deletionTimestamp: goingAt }), status: evicted })
  log.seen(aPod('c'))
  log.gone({ ...aPod('a', { deletionTimestamp: goingAt }), status: evicted })
  log.seen({ ...aPod('b', { deletionTimestamp: goingAt }), status: evicted })
  assert.deepEqual(kindsOf(records), ['shape', 'podCame', 'podCame', 'podMoved'])
  clock.nowMs += 2 * 60_000
  log.settle(clock.nowMs)
  assert.deepEqual(records.at(-1), { kind: 'podEnded', atMs: startMs, pod: 1 })
})

test('EXP-16 a later session knows the pods of the one before, and ends those that are gone', () => {
  const { records, log, clock, sink } = aLog()
  log.seen(aPod('a'))
  log.seen(aPod('b'))
  const next = new PodLog(sink, clock, traceStateAfter(records))
  next.begin([aPod('b'), aPod('c')])
  assert.deepEqual(kindsOf(records).slice(3), ['podEnded', 'shape', 'podCame'])
  const last = records.at(-1)
  assert.deepEqual(last?.kind === 'podCame' && [last.pod, last.shape, last.name], [2, 1, 'web-c'])
})

test('EXP-16 environment, commands and images are not recorded', () => {
  const { records, log } = aLog()
  const pod = aPod('a')
  const container = {
    name: 'app',
    image: 'secret-image',
    env: [{ name: 'KEY', value: 'hush' }],
    command: ['run'],
  }
  log.seen({ ...pod, spec: { ...pod.spec, containers: [container] } })
  assert.doesNotMatch(JSON.stringify(records), /secret-image|hush|KEY|command/)
})
