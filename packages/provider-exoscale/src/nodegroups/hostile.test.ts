import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NodeGroups } from '@tenon/provider'
import { oneChunk, type Transport } from '@tenon/runtime'
import { aNode, aStage, batchPoolId, type Stage } from './node-groups.test-support.ts'

const reads = /^\/v2\/(instance|instance-pool|sks-cluster|quota|operation)/
const empty = { status: 200, headers: { 'content-type': 'application/json' } }

/** What a server, or somebody between, may answer instead. */
const answers: Readonly<Record<string, (path: string, isRead: boolean) => string>> = {
  'an empty body': () => '',
  'an empty object': () => '{}',
  'an empty list': () => '[]',
  null: () => 'null',
  'half an object': (path) => `{"id":"${path.split(/[/:]/)[3] ?? ''}"`,
  'an object with nothing but its id': (path) => `{"id":"${path.split(/[/:]/)[3] ?? ''}"}`,
  'a page of a proxy': () => '<html>moved</html>',
}

function lying(answer: (path: string, isRead: boolean) => string, lies: { until: number }) {
  return (transport: Transport): Transport => ({
    send: async (request, signal) => {
      const isRead = request.method === 'GET' && reads.test(request.path)
      if (lies.until <= 0) return await transport.send(request, signal)
      lies.until--
      return { ...empty, body: oneChunk(answer(request.path, isRead)) }
    },
  })
}

for (const [title, answer] of Object.entries(answers)) {
  test(`${title} in place of every answer loses no group, member or node`, async () => {
    const lies = { until: 0 }
    const stage = aStage({ between: lying(answer, lies), specs: ['1:9:batch', '1:9:workers'] })
    await stage.discover()
    const before = stage.groups.list()
    lies.until = 1_000
    await assert.rejects(stage.settle(stage.groups.refresh(stage.signal)), { name: 'NodeGroupError' })
    assert.deepEqual(stage.groups.list(), before)
    await assert.rejects(stage.settle(stage.groups.instances(batchPoolId, stage.signal)), {
      name: 'NodeGroupError',
    })
    const [node] = stage.nodesOf(batchPoolId)
    assert.ok(node)
    assert.deepEqual(await stage.groups.groupOf(node, stage.signal), { kind: 'group', groupId: batchPoolId })
    const stranger = aNode('new', 'exoscale://00000000-0000-4000-8000-00000000beef')
    assert.equal((await stage.settle(stage.groups.groupOf(stranger, stage.signal))).kind, 'unresolved')
    await assert.rejects(stage.settle(stage.groups.increaseSize(batchPoolId, 1, stage.signal)), {
      name: 'NodeGroupError',
    })
    assert.equal(stage.members(batchPoolId).length, 2)
  })
}

/** Calls to lose replies of, or to answer with 500 after their effect. */
const changes = [
  ['scale-instance-pool', (stage: Stage, groups: NodeGroups) => increase(stage, groups), 3],
  ['evict-instance-pool-members', (stage: Stage, groups: NodeGroups) => evict(stage, groups), 1],
] as const

async function increase(stage: Stage, groups: NodeGroups): Promise<void> {
  const { settled } = await groups.increaseSize(batchPoolId, 1, stage.signal)
  await settled
}

async function evict(stage: Stage, groups: NodeGroups): Promise<void> {
  const [id = ''] = stage.members(batchPoolId)
  await groups.deleteInstances(batchPoolId, [`exoscale://${id}`], stage.signal)
}

describe('lost replies and failures of the server', () => {
  for (const [operation, change, size] of changes) {
    test(`${operation}: a lost reply is not a second change`, async () => {
      const stage = aStage()
      await stage.discover()
      stage.world.cloud.faults.add({ operation, times: 1, effect: { kind: 'lostReply' } })
      await stage.settle(change(stage, stage.groups))
      assert.equal(stage.members(batchPoolId).length, size)
      assert.equal(stage.groups.group(batchPoolId)?.targetSize, size)
    })

    test(`${operation}: all replies lost, the pool tells that it worked`, async () => {
      const stage = aStage()
      await stage.discover()
      stage.world.cloud.faults.add({ operation, effect: { kind: 'lostReply' } })
      await stage.settle(change(stage, stage.groups))
      assert.equal(stage.members(batchPoolId).length, size)
    })

    test(`${operation}: an answer of 500 before anything happened fails and changes nothing`, async () => {
      const stage = aStage()
      await stage.discover()
      stage.world.cloud.faults.add({ operation, effect: { kind: 'refuse', status: 500 } })
      await assert.rejects(stage.settle(change(stage, stage.groups)), {
        name: 'NodeGroupError',
        message: new RegExp(`^${operation} failed: .*500`),
      })
      assert.equal(stage.members(batchPoolId).length, 2)
      assert.equal(stage.groups.group(batchPoolId)?.targetSize, 2)
    })

    test(`${operation}: a pool that another process changes is waited for`, async () => {
      const stage = aStage()
      await stage.discover()
      const other = stage.restarted()
      for (const node of stage.nodesOf(batchPoolId)) await other.groupOf(node, stage.signal)
      const first = stage.groups.increaseSize(batchPoolId, 2, stage.signal)
      await stage.settle(first)
      await other.refresh(stage.signal)
      await stage.settle(change(stage, other))
      assert.equal(stage.members(batchPoolId).length, size + 2)
    })

    test(`${operation}: the process ends after the call; the next one sees what came of it`, async () => {
      const stage = aStage()
      await stage.discover()
      const ending = new AbortController()
      const doomed = change({ ...stage, signal: ending.signal }, stage.groups)
      doomed.catch(() => undefined)
      await stage.world.clock.advance(100)
      ending.abort(new Error('the process ends'))
      await assert.rejects(stage.settle(doomed), /the process ends/)
      const next = stage.restarted()
      for (const node of stage.nodesOf(batchPoolId)) await next.groupOf(node, stage.signal)
      await stage.world.clock.advance(30_000)
      await next.refresh(stage.signal)
      assert.equal(next.group(batchPoolId)?.targetSize, size)
      assert.equal(stage.members(batchPoolId).length, size)
    })
  }
})

test('must-hold 5: a group that answers 500 is told with its reason while the others are read', async () => {
  let isBroken = false
  const stage = aStage({
    between: (transport) => ({
      send: async (request, signal) =>
        request.path === `/v2/instance-pool/${batchPoolId}` && isBroken
          ? { status: 500, headers: {}, body: oneChunk('no database') }
          : await transport.send(request, signal),
    }),
  })
  await stage.discover()
  isBroken = true
  const faults = await stage.settle(stage.groups.refresh(stage.signal))
  assert.deepEqual(
    faults.map(({ groupId }) => groupId),
    [batchPoolId],
  )
  assert.match(faults[0]?.reason ?? '', /get-instance-pool failed: .*500.*no database/)
  const { settled } = await stage.groups.increaseSize(stage.workersId, 1, stage.signal)
  await stage.settle(settled)
  assert.equal(stage.members(stage.workersId).length, 3)
})
