/** Nodes that administrators take out of service (lifecycle conditions of Nodes). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, type Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims } from '../testing/pools.test-support.ts'
import { cpu, eventMessages, left, mediumLabels, openDisruption } from './disruption-stage.test-support.ts'

/** `node-a` reports, and somebody sets this condition of it. */
function setDraining(stage: Stage, status: 'True' | 'False'): void {
  const at = rfc3339(stage.now)
  const times = { lastHeartbeatTime: at, lastTransitionTime: at }
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'Kubelet', message: '', ...times },
    { type: 'DrainInProgress', status, reason: 'Upgrade', message: '', ...times },
  ]
  stage.patch(kinds.node, 'node-a', { status: { conditions } }, 'status')
}

test('VER-55 a node on which somebody else drains is neither consolidated nor takes pods of others', async (t) => {
  const stage = await openDisruption(t, { types: [aType('medium', 4)] })
  // Each node has room for the pod of the other one.
  for (const name of ['a', 'b']) {
    await stage.claim(name, {}, { labels: mediumLabels })
    await stage.join(name)
    await stage.report(`node-${name}`)
  }
  setDraining(stage, 'True')
  for (const name of ['a', 'b']) await stage.pod(`on-${name}`, `node-${name}`, cpu('1'))
  await stage.pass(10 * minutes)
  assert.deepEqual([left(stage), madeClaims(stage)], [['a', 'b'], []])
  assert.deepEqual(
    eventMessages(stage, 'DisruptionBlocked', 'Node/node-a').at(-1),
    'Others take the Node out of service (condition DrainInProgress)',
  )
  setDraining(stage, 'False')
  await stage.pass(10 * minutes)
  assert.equal(left(stage).length, 1, 'as before once it is over')
})
