import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, labels } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../lifecycle/stage.test-support.ts'
import { createPool } from '../provisioning.test-support.ts'
import { aKwokPool } from '../world.ts'

/** Says of a claim that it may be consolidated, whatever its controllers think. */
function forceConsolidatable(stage: Stage, name: string): void {
  const kept = (stage.claimNow(name)?.status?.conditions ?? []).filter(
    ({ type }) => type !== 'Consolidatable',
  )
  const lastTransitionTime = rfc3339(stage.now)
  const forced = { type: 'Consolidatable', status: 'True', reason: 'Forced', message: '', lastTransitionTime }
  stage.patch(karpenterKinds.nodeClaim, name, { status: { conditions: [...kept, forced] } }, 'status')
}

test('STA-89 an empty static node stays, even if its claim says that it may be consolidated', async (t) => {
  const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } as const
  const stage = await Stage.open(t, { pool: { replicas: 1, disruption } })
  createPool(stage, aKwokPool('dynamic', { disruption }))
  await stage.ready('static')
  await stage.ready('dynamic', {}, { labels: { [labels.nodePool]: 'dynamic' } })
  for (let i = 0; i < 60; i++) {
    forceConsolidatable(stage, 'static')
    await stage.pass(10 * seconds)
  }
  assert.equal(stage.state('static', 'Consolidatable'), 'True/Forced')
  assert.equal(stage.claimNow('static')?.metadata.deletionTimestamp, undefined)
  assert.equal(stage.nodeNow('node-static')?.spec?.taints?.length ?? 0, 0)
  assert.deepEqual(
    stage
      .events('DisruptionTerminating')
      .map(({ object }) => object)
      .toSorted(),
    ['Node/node-dynamic', 'NodeClaim/dynamic'],
  )
  await stage.pass(10 * minutes)
  assert.notEqual(stage.claimNow('static'), undefined)
  assert.equal(stage.claimNow('dynamic'), undefined)
})
