import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResumePace } from './resume-pace.ts'

test('WNT-32 repairs take no part of a step after a pause', () => {
  const pace = new ResumePace({
    caches: { nodePools: { list: () => [] } },
    state: { brake: { endedMs: () => 0, holding: () => undefined } },
    clock: { now: () => 1000 },
  })
  const candidates = [{ pool: { metadata: { name: 'web' } } }]
  pace.begun({ candidates, reason: 'Unhealthy' })
  assert.equal(pace.stepOf('web')?.taken, 0)
  pace.begun({ candidates, reason: 'Drifted' })
  assert.equal(pace.stepOf('web')?.taken, 1)
})
