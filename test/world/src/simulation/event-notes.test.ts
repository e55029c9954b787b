import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventInput } from '@tenon/kube'
import { VirtualClock } from '@tenon/runtime'
import { EventNotes } from './event-notes.ts'

function anEvent(message: string): EventInput {
  return {
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-1', namespace: 'default' } },
    type: 'Normal',
    reason: 'Nominated',
    message,
  }
}

test('Events are kept as lines, and what is repeated is kept once', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1))
  const notes = new EventNotes(clock)
  notes.record(anEvent('goes to node a'))
  await clock.advance(60_000)
  notes.record(anEvent('goes to node a'))
  notes.record(anEvent('goes to node b'))
  await clock.advance(10 * 60_000)
  notes.record(anEvent('goes to node a'))
  assert.deepEqual(notes.lines, [
    '2026-01-01T00:00:00Z Nominated Pod/web-1: goes to node a',
    '2026-01-01T00:01:00Z Nominated Pod/web-1: goes to node b',
    '2026-01-01T00:11:00Z Nominated Pod/web-1: goes to node a',
  ])
})

test('only the newest Events are kept', () => {
  const notes = new EventNotes(new VirtualClock())
  for (let i = 0; i < 1000; i++) notes.record(anEvent(`number ${i}`))
  assert.equal(notes.lines.length, 200)
  assert.match(notes.lines.at(-1) ?? '', /number 999$/)
})
