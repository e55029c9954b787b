import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NodeGroups, NodeGroupError } from '@tenon/provider'
import { silentLogger } from '@tenon/runtime'
import { timeoutText } from './cluster-state.ts'
import { applyUpdate, fixSizes } from './effects.ts'
import { aGroup, aNode, aRegistry, minute, observe, startMs } from './registry.test-support.ts'

function stage(answer: () => Promise<'done' | 'unsupported'>) {
  const told: string[] = []
  const decreases: [string, number][] = []
  const decreaseTargetSize: NodeGroups['decreaseTargetSize'] = (groupId, delta) => {
    decreases.push([groupId, delta])
    return answer()
  }
  const dependencies = {
    groups: { decreaseTargetSize, group: () => undefined },
    events: {
      status: (type: string, reason: string) => void told.push(`${type} ${reason}`),
      object: () => undefined,
    },
    countFailure: (groupId: string, reason: string, nodes: number) =>
      void told.push(`${groupId} failed ${reason} ${nodes}`),
    logger: silentLogger,
  }
  return { told, decreases, dependencies, signal: new AbortController().signal }
}

test('CAS-30 a request that timed out is told, counted, and its size taken back', async () => {
  const registry = aRegistry()
  const facts = { groups: [aGroup('a', 5)], nodes: [aNode('a-1')] }
  registry.registerScaleUp('a', 4, startMs)
  const update = observe(registry, { ...facts, afterMs: 16 * minute })
  const { told, decreases, dependencies, signal } = stage(() => Promise.resolve('unsupported'))
  await applyUpdate(update, dependencies, signal)
  assert.deepEqual(told, ['Warning ScaleUpTimedOut', 'a failed timeout 4'])
  assert.deepEqual(decreases, [['a', 4]])
})

test('CAS-30 texts tell in seconds how long a short time of provisioning was', () => {
  const registry = aRegistry({ maxNodeProvisionTimeMs: 25_000 })
  const facts = { groups: [aGroup('a', 5)], nodes: [aNode('a-1')] }
  registry.registerScaleUp('a', 4, startMs)
  const late = observe(registry, { ...facts, afterMs: 25_400 })
  assert.deepEqual(late.timedOut.map(timeoutText), ['Nodes added to group a failed to register within 25s'])
  assert.equal(
    registry.backoffOf('a', startMs + 25_400)?.message,
    'Nodes added to group a failed to register within 25s',
  )
})

test('a size that cannot be taken back is told and stops nothing', async () => {
  const request = { groupId: 'a', increase: 2, sinceMs: 0, deadlineMs: 1, afterMs: 2, takesBack: 2 }
  const failed = { groupId: 'b', code: 'QUOTA', message: 'none left', count: 3 }
  const { told, dependencies, signal } = stage(() => Promise.reject(new NodeGroupError('no')))
  await applyUpdate({ timedOut: [request], failedCreations: [failed] }, dependencies, signal)
  assert.deepEqual(told, [
    'Warning ScaleUpFailed',
    'b failed QUOTA 3',
    'Warning ScaleUpTimedOut',
    'a failed timeout 2',
    'Warning FailedToRevertScaleUp',
  ])
})

test('trap 5: a cloud that cannot lower a size does not count as having done it', async () => {
  const fixes = [{ groupId: 'a', delta: 1 }]
  const unsupported = stage(() => Promise.resolve('unsupported'))
  assert.equal(await fixSizes(fixes, unsupported.dependencies, unsupported.signal), false)
  const failing = stage(() => Promise.reject(new NodeGroupError('no')))
  assert.equal(await fixSizes(fixes, failing.dependencies, failing.signal), false)
  const done = stage(() => Promise.resolve('done'))
  assert.equal(await fixSizes(fixes, done.dependencies, done.signal), true)
  assert.deepEqual(done.decreases, [['a', 1]])
})
