import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { joinAll, openStatic } from '../static-capacity/static-stage.test-support.ts'

const atRest = { pool: { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '0' }] } } }

test('DIS-152 a claim that is not initialized any more, or whose pool never consolidates, is not consolidatable', async (t) => {
  const stage = await Stage.open(t, atRest)
  // No Node comes for this one, so that it stays uninitialized.
  await stage.claim('b')
  for (const status of ['Unknown', 'False']) {
    const others = (stage.claimNow('b')?.status?.conditions ?? []).filter(
      ({ type }) => type !== 'Initialized',
    )
    const at = { reason: 'Told', message: '', lastTransitionTime: rfc3339(stage.now) }
    const told = [
      { type: 'Initialized', status, ...at },
      { type: 'Consolidatable', status: 'True', ...at },
    ]
    stage.patch(karpenterKinds.nodeClaim, 'b', { status: { conditions: [...others, ...told] } }, 'status')
    await stage.pass(seconds)
    assert.equal(stage.state('b', 'Consolidatable'), 'absent', status)
  }
  await stage.ready('a')
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { consolidateAfter: 'Never' } } })
  await stage.pass(seconds)
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
})

test('DIS-153 a node of a static pool is never consolidatable, and may have drifted', async (t) => {
  const stage = await openStatic(t, 1, atRest)
  const [name = ''] = await joinAll(stage)
  stage.cloud.onIsDrifted = () => 'ImageChanged'
  await stage.pass(10 * minutes)
  assert.equal(stage.state(name, 'Consolidatable'), 'absent')
  assert.equal(stage.state(name, 'Drifted'), 'True/ImageChanged')
})
