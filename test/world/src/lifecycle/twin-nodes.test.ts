import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { annotations } from '@tenon/api'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'

/** An initialized claim `a` with Node `node-a`. */
async function registered(t: TestContext, options: Parameters<typeof Stage.open>[1] = {}): Promise<Stage> {
  const stage = await Stage.open(t, options)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  await stage.ready('a')
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
  return stage
}

const nodes = (stage: Stage) =>
  stage.world
    .nodes()
    .map(({ metadata }) => metadata.name)
    .toSorted()
const consistency = (stage: Stage) => stage.condition('a', 'ConsistentStateFound')

function told(stage: Stage): readonly string[] {
  const objects = stage.events('MultipleNodesFound').map(({ object }) => object)
  return [...new Set(objects)].toSorted()
}

describe('RPB-16 two Nodes of one instance', () => {
  for (const first of ['goes silent', 'comes back'])
    test(`a kubelet that returns under another name is the instance's, when it first ${first}`, async (t) => {
      const stage = await registered(t)
      if (first === 'goes silent') await stage.report('node-a', 'Unknown')
      await stage.join('a', { name: 'renamed' })
      await stage.report('renamed')
      if (first === 'comes back') {
        assert.equal(stage.claimNow('a')?.status?.nodeName, 'node-a', 'as long as both report')
        await stage.pass(40 * seconds)
        await stage.report('node-a', 'Unknown')
      }
      await stage.pass(2 * minutes)
      assert.deepEqual(nodes(stage), ['renamed'])
      const claim = stage.claimNow('a')
      assert.deepEqual([claim?.status?.nodeName, claim?.metadata.deletionTimestamp], ['renamed', undefined])
      for (const type of ['Registered', 'Initialized']) assert.equal(stage.state('a', type), `True/${type}`)
      assert.equal(consistency(stage)?.status, 'True')
      assert.deepEqual(stage.cloud.timesOf('delete a'), [])
    })

  test('a Node for which nobody reports is told of and removed, and the instance goes on', async (t) => {
    const stage = await registered(t)
    await stage.join('a', { name: 'twin' })
    await stage.pass(5 * seconds)
    assert.equal(consistency(stage)?.status, 'False')
    assert.match(consistency(stage)?.message ?? '', /node-a, twin; node-a counts/)
    assert.deepEqual(told(stage), ['Node/twin', 'NodeClaim/a'])
    // Its Node still takes pods.
    waitingPod(stage, 'pod')
    await stage.pass(10 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    await stage.pass(2 * minutes)
    assert.deepEqual(nodes(stage), ['node-a'])
    assert.equal(consistency(stage)?.status, 'True')
    assert.deepEqual(
      [stage.claimNow('a')?.status?.nodeName, stage.state('a', 'Registered')],
      ['node-a', 'True/Registered'],
    )
  })

  test('an instance for which two kubelets report is replaced after the registration time-out', async (t) => {
    const stage = await registered(t)
    await stage.join('a', { name: 'twin' })
    await stage.report('twin')
    await stage.pass(14 * minutes)
    assert.deepEqual(
      [nodes(stage), stage.claimNow('a')?.metadata.deletionTimestamp],
      [['node-a', 'twin'], undefined],
    )
    assert.equal(consistency(stage)?.status, 'False')
    await stage.pass(3 * minutes)
    assert.equal(stage.claimNow('a'), undefined)
  })

  test('one whose kubelet was renamed, and then reports under two other names, is replaced, too', async (t) => {
    const stage = await registered(t)
    await stage.report('node-a', 'Unknown')
    await stage.join('a', { name: 'renamed' })
    await stage.report('renamed')
    await stage.pass(2 * minutes)
    assert.deepEqual([nodes(stage), stage.claimNow('a')?.status?.nodeName], [['renamed'], 'renamed'])
    for (const name of ['node-a', 'again']) {
      await stage.join('a', { name })
      await stage.report(name)
    }
    await stage.report('renamed', 'Unknown')
    await stage.pass(14 * minutes)
    assert.equal(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
    await stage.pass(3 * minutes)
    assert.equal(stage.claimNow('a'), undefined)
    assert.deepEqual(nodes(stage), [])
  })

  test('an instance of two Nodes ends when the pods of both have left', async (t) => {
    const stage = await registered(t)
    await stage.pod('web', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } })
    await stage.join('a', { name: 'twin' })
    await stage.report('twin')
    await stage.pass(5 * seconds)
    await stage.deleteClaim('a')
    await stage.pass(minutes)
    assert.deepEqual(stage.cloud.timesOf('delete a'), [])
    assert.notEqual(stage.state('a', 'Drained'), 'True/Drained')
    await stage.end('web')
    await stage.pass(30 * seconds)
    assert.equal(stage.claimNow('a'), undefined)
    assert.deepEqual(nodes(stage), [])
  })

  test('an instance whose kubelet takes another name during its drain outlives the pods there, seen or not', async (t) => {
    const views = new WrongViews()
    const stage = await registered(t, { apiPath: views.path })
    await stage.pod('web', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } })
    await stage.deleteClaim('a')
    await stage.pass(minutes)
    views.late('nodes', 4 * minutes)
    await stage.join('a', { name: 'renamed', taints: [] })
    await stage.report('renamed')
    await stage.pod('new', 'renamed', { annotations: { [annotations.doNotDisrupt]: 'true' } })
    await stage.report('node-a', 'Unknown')
    await stage.end('web')
    await stage.pass(10 * minutes)
    assert.deepEqual(stage.cloud.timesOf('delete a'), [])
    assert.notEqual(stage.nodeNow('renamed')?.metadata.deletionTimestamp, undefined)
    await stage.end('new')
    await stage.pass(5 * minutes)
    assert.deepEqual([nodes(stage), stage.claimNow('a')], [[], undefined])
  })

  test('one of which the second falls silent again is not', async (t) => {
    const stage = await registered(t)
    await stage.join('a', { name: 'twin' })
    await stage.report('twin')
    await stage.pass(10 * minutes)
    await stage.report('twin', 'Unknown')
    await stage.pass(20 * minutes)
    assert.deepEqual([nodes(stage), stage.claimNow('a')?.status?.nodeName], [['node-a'], 'node-a'])
  })

  test('of which one reports before the instance is registered, that one is registered', async (t) => {
    const stage = await Stage.open(t)
    await stage.claim('a')
    await stage.join('a', { name: 'stale', taints: [] })
    await stage.join('a')
    await stage.report('stale', 'Unknown')
    await stage.report('node-a')
    await stage.pass(3 * minutes)
    assert.deepEqual([nodes(stage), stage.claimNow('a')?.status?.nodeName], [['node-a'], 'node-a'])
    assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
  })
})
