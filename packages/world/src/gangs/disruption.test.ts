/** Graceful disruption leaves a group the pods that must run together (gangs.md 7.5). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels } from '@tenon/api'
import type { Stage } from '../testing/stage.test-support.ts'
import { minutes } from '../testing/stage.test-support.ts'
import { group, openGangs } from './gang-stage.test-support.ts'

const member = { labels: { 'scheduling.x-k8s.io/pod-group': 'train' } }
const small = {
  spec: { containers: [{ name: 'app', image: 'i', resources: { requests: { cpu: '100m' } } }] },
}

/** Nodes of 4 cores, each with so many members of a group that needs `minMember`. */
async function running(t: Parameters<typeof openGangs>[0], minMember: number, ...counts: readonly number[]) {
  const { stage } = await openGangs(t, {
    pool: { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } },
  })
  group(stage, 'train', minMember)
  const tags = {
    [labels.instanceType]: 'type-4',
    [labels.zone]: 'zone-1',
    [labels.capacityType]: 'on-demand',
  }
  for (const [at, count] of counts.entries()) {
    await stage.ready(`n${at}`, {}, { labels: tags })
    for (let pod = 0; pod < count; pod++)
      await stage.pod(`pod-${at}-${pod}`, `node-n${at}`, { ...member, ...small })
  }
  return stage
}

const blocked = (stage: Stage, node: string): readonly string[] =>
  stage
    .events('DisruptionBlocked')
    .filter(({ object }) => object === `Node/node-${node}`)
    .map(({ message }) => message)

const isGoing = (stage: Stage, name: string): boolean =>
  stage.claimNow(name)?.metadata.deletionTimestamp !== undefined || stage.claimNow(name) === undefined

describe('nodes with pods of a group', () => {
  test('GNG-20 none of two half-used nodes of a group without spare members goes', async (t) => {
    const stage = await running(t, 4, 2, 2)
    await stage.pass(10 * minutes)
    for (const name of ['n0', 'n1']) {
      assert.equal(isGoing(stage, name), false, name)
      assert.match(
        blocked(stage, name).join('\n'),
        /too few of their group would run .*running=4, minCount=4/,
      )
    }
  })

  test('GNG-21 with two spare members a node with two may go, one with three may not', async (t) => {
    const stage = await running(t, 3, 2, 3)
    await stage.pass(3 * minutes)
    assert.equal(isGoing(stage, 'n0'), true)
    assert.equal(isGoing(stage, 'n1'), false)
    assert.match(blocked(stage, 'n1').join('\n'), /too few of their group would run/)
  })

  test('GNG-21 of two nodes that may go one goes at a time', async (t) => {
    const stage = await running(t, 3, 2, 2, 1)
    await stage.pass(3 * minutes)
    assert.deepEqual(['n0', 'n1', 'n2'].map((name) => isGoing(stage, name)).filter(Boolean).length, 1)
  })

  test('GNG-23 half of a group has ended: the rest is left alone', async (t) => {
    const stage = await running(t, 4, 2)
    await stage.pass(10 * minutes)
    assert.equal(isGoing(stage, 'n0'), false)
    assert.match(blocked(stage, 'n0').join('\n'), /running=2, minCount=4/)
  })
})
