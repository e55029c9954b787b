/** A pod that the cache does not show yet keeps its node, whatever a command is for (reports-2.md 1, 3). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { annotations, kinds } from '@tenon/api'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import {
  cpu,
  left,
  openDisruption,
  setBudget,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const protectedPod = { annotations: { [annotations.doNotDisrupt]: 'true' } }
const closed = { disruption: { budgets: [{ nodes: '0' }] } }

async function withLatePods(t: TestContext): Promise<{ readonly stage: Stage; readonly views: WrongViews }> {
  const views = new WrongViews()
  const stage = await openDisruption(t, { ...closed, apiPath: views.path })
  return { stage, views }
}

const reasons: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  'that is empty': async (stage) => {
    await stage.ready('a')
  },
  'that has drifted': async (stage) => {
    setDrifted(stage, 'a')
    await stage.ready('a')
  },
  'whose pods fit elsewhere': async (stage) => {
    for (const name of ['a', 'b']) await stage.ready(name)
    await stage.pod('small', 'node-a', cpu('100m'))
    await stage.pod('large', 'node-b', cpu('2'))
  },
}

for (const [which, prepare] of Object.entries(reasons))
  for (const delay of [0, 100, 2000, 11_000])
    test(`RPB-8 RPB-9 a node ${which} stays for a protected pod that came ${delay} ms before its turn`, async (t) => {
      const { stage, views } = await withLatePods(t)
      await prepare(stage)
      views.late('pods', 5 * minutes)
      setBudget(stage, '100%')
      await stage.pass(delay)
      await stage.pod('late', 'node-a', protectedPod)
      await stage.pass(4 * minutes)
      assert.ok(!stage.isLeaving('late'))
      assert.ok(left(stage).includes('a'))
      assert.ok(!tainted(stage).includes('a'), 'it takes pods again')
      assert.match(eventMessages(stage, 'DisruptionBlocked', 'Node/node-a').join('\n'), /Pod=default\/late/)
    })

test('RPB-8 a pod that is protected while its replacement starts keeps its node', async (t) => {
  const stage = await openDisruption(t)
  await stage.ready('a')
  await stage.pod('web', 'node-a', cpu('2'))
  setDrifted(stage, 'a')
  await stage.pass(20 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  stage.world.cluster.server.local.patch(kinds.pod, 'default', 'web', { metadata: protectedPod })
  await stage.pass(5 * seconds)
  assert.deepEqual(tainted(stage), [])
  assert.ok(!stage.isLeaving('web'))
})
