/** When nodes may go: schedules in time zones, windows of pods, and budgets after a pause. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { hours, minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { left, openDisruption } from './disruption-stage.test-support.ts'

/** Lets time pass until 3 s before the moment. */
async function waitFor(stage: Stage, time: string): Promise<void> {
  await stage.pass(Date.parse(time) - stage.now - 3 * seconds)
}

/** When the first node of those that are left is on its way out, as RFC 3339. */
async function firstGoes(stage: Stage, withinMs: number): Promise<string | undefined> {
  const before = left(stage).length
  await stage.world.clock.advanceUntil(() => left(stage).length < before, withinMs)
  return left(stage).length < before ? rfc3339(stage.now) : undefined
}

function annotatePool(stage: Stage, values: Readonly<Record<string, string | null>>): void {
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations: values } })
}

test('WNT-28 a budget follows the clocks of its zone, and a node goes when its window ends', async (t) => {
  // Pauses between passes are long, so that only the window wakes the loop.
  const settings = { disruptionPollMs: 12 * hours, validationDelayMs: 0 }
  const budgets = [{ nodes: '0', schedule: '30 2 * * *', duration: '5h' }]
  const startMs = Date.parse('2026-03-29T05:57:00Z')
  const stage = await openDisruption(t, { idle: true, startMs, settings, disruption: { budgets } })
  annotatePool(stage, { 'tenon.sh/time-zone': 'Europe/Zurich' })
  await stage.start()
  await stage.ready('a')
  await waitFor(stage, '2026-03-29T06:00:00Z')
  assert.deepEqual(left(stage), ['a'], 'the window began at three by summer time, not at half past')
  const went = await firstGoes(stage, 30 * seconds)
  assert.ok(went !== undefined && went.startsWith('2026-03-29T06:00:0'), went)
})

test('WNT-28 a zone that cannot be read is named, and schedules follow UTC', async (t) => {
  const budgets = [{ nodes: '0', schedule: '0 0 * * *', duration: '23h' }]
  const startMs = Date.parse('2026-06-01T22:57:00Z')
  const stage = await openDisruption(t, { idle: true, startMs, disruption: { budgets } })
  annotatePool(stage, { 'tenon.sh/time-zone': 'Europe/Zürich' })
  await stage.start()
  const [event] = stage.events('AnnotationIgnored')
  assert.match(event?.message ?? '', /time-zone"\]: "Europe\/Zürich" .*; use a name of the IANA/)
  await stage.ready('a')
  const went = await firstGoes(stage, 10 * minutes)
  assert.match(went ?? '', /T23:00:/)
})
