import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toBeDeletedTaint } from '../names.ts'
import {
  aGroup,
  aNode,
  anInstance,
  aRegistry,
  minute,
  nodes,
  observe,
  startMs,
} from './registry.test-support.ts'

const unready = { ready: false }

test('CAS-23 four unready nodes of ten are healthy, five are not', () => {
  const registry = aRegistry()
  observe(registry, {
    groups: [aGroup('a', 10)],
    nodes: [...nodes('a-ok', 6), ...nodes('a-bad', 4, unready)],
  })
  assert.equal(registry.isClusterHealthy(), true)
  observe(registry, {
    groups: [aGroup('a', 10)],
    nodes: [...nodes('a-ok', 5), ...nodes('a-bad', 5, unready)],
  })
  assert.equal(registry.isClusterHealthy(), false)
})

test('CAS-24 three unready nodes of three are within the count that is fine', () => {
  const registry = aRegistry()
  observe(registry, { groups: [aGroup('a', 3)], nodes: nodes('a', 3, unready) })
  assert.equal(registry.isClusterHealthy(), true)
  assert.equal(registry.isGroupHealthy('a'), true)
})

test('nodes outside groups count in the health of the cluster (trap 22)', () => {
  const registry = aRegistry()
  observe(registry, { groups: [aGroup('a', 4)], nodes: [...nodes('a', 4), ...nodes('other', 6, unready)] })
  assert.equal(registry.isClusterHealthy(), false)
  assert.equal(registry.totals().registered.length, 10)
  assert.equal(registry.readinessOf('a')?.registered.length, 4)
})

test('CAS-25 a node that is not ready is starting for 15 min, then unready', () => {
  const registry = aRegistry()
  const young = aNode('a-young', { ready: false, ageMs: 5 * minute })
  const old = aNode('a-old', { ready: false, ageMs: 16 * minute })
  const edge = aNode('a-edge', { ready: false, ageMs: 15 * minute })
  observe(registry, { groups: [aGroup('a', 3)], nodes: [young, old, edge] })
  assert.deepEqual(registry.readinessOf('a')?.notStarted, ['a-young'])
  assert.deepEqual(registry.readinessOf('a')?.unready, ['a-old', 'a-edge'])
})

test('CAS-26 the startup taint makes a node unready because the loop shows it as not ready', () => {
  const registry = aRegistry()
  const shown = aNode('a-starting', {
    ready: false,
    taint: 'startup-taint.cluster-autoscaler.kubernetes.io/x',
  })
  const status = aNode('a-status', { taint: 'status-taint.cluster-autoscaler.kubernetes.io/x' })
  observe(registry, { groups: [aGroup('a', 2)], nodes: [shown, status] })
  assert.deepEqual(registry.readinessOf('a')?.unready, ['a-starting'])
  assert.deepEqual(registry.readinessOf('a')?.ready, ['a-status'])
})

test('pressure, a missing network and their taints make a node not ready', () => {
  const registry = aRegistry()
  const bad = [
    aNode('a-disk', { conditions: [{ type: 'DiskPressure', status: 'True' }] }),
    aNode('a-net', { conditions: [{ type: 'NetworkUnavailable', status: 'True' }] }),
    aNode('a-taint', { taint: 'node.kubernetes.io/disk-pressure' }),
  ]
  const memory = aNode('a-memory', { conditions: [{ type: 'MemoryPressure', status: 'True' }] })
  const { status: _, ...silent } = aNode('a-silent')
  observe(registry, { groups: [aGroup('a', 5)], nodes: [...bad, memory, silent] })
  assert.deepEqual(registry.readinessOf('a')?.ready, ['a-memory'])
  assert.equal(registry.readinessOf('a')?.unready.length, 4)
})

test('a node that is being deleted counts as deleted whatever else it is', () => {
  const registry = aRegistry()
  const leaving = aNode('a-leaving', { taint: toBeDeletedTaint })
  observe(registry, { groups: [aGroup('a', 1)], nodes: [leaving] })
  assert.deepEqual(registry.readinessOf('a')?.deleted, ['a-leaving'])
  assert.deepEqual(registry.readinessOf('a')?.ready, [])
})

test('CAS-27 upcoming nodes are counted while a request is live and the group is not backed off', () => {
  const registry = aRegistry()
  const facts = { groups: [aGroup('a', 7)], nodes: [aNode('a-1')] }
  registry.registerScaleUp('a', 6, startMs)
  observe(registry, facts)
  assert.equal(registry.upcomingOf('a', startMs), 6)

  const without = aRegistry()
  observe(without, { ...facts, groups: [aGroup('a', 1)], afterMs: -2 * minute })
  observe(without, facts)
  assert.equal(without.upcomingOf('a', startMs), 0)

  registry.registerFailedScaleUp('a', { code: 'cloudProviderError', message: 'no quota' }, startMs)
  assert.equal(registry.upcomingOf('a', startMs), 0)
  assert.equal(registry.safety('a', startMs), 'backoff')
})

test('CAS-29 a suspended node is neither missing nor upcoming', () => {
  const registry = aRegistry()
  const suspended = aNode('a-2', { conditions: [{ type: 'Suspended', status: 'True' }] })
  registry.registerScaleUp('a', 1, startMs)
  observe(registry, { groups: [aGroup('a', 2)], nodes: [aNode('a-1'), suspended] })
  assert.equal(registry.isGroupHealthy('a'), true)
  assert.equal(registry.upcomingOf('a', startMs), 0)
  assert.equal(registry.hasLiveRequest('a'), false)
})

test('CAS-30 a request that is not met in 15 min times out and backs the group off for 5 min', () => {
  const registry = aRegistry()
  const facts = { groups: [aGroup('a', 5)], nodes: [aNode('a-1')] }
  observe(registry, facts)
  registry.registerScaleUp('a', 4, startMs)
  assert.deepEqual(observe(registry, { ...facts, afterMs: 15 * minute }).timedOut, [])
  const { timedOut } = observe(registry, { ...facts, afterMs: 15 * minute + 1 })
  assert.deepEqual(timedOut, [
    {
      groupId: 'a',
      increase: 4,
      sinceMs: startMs,
      deadlineMs: startMs + 15 * minute,
      afterMs: 15 * minute + 1,
      takesBack: 4,
    },
  ])
  const failedMs = startMs + 15 * minute + 1
  assert.equal(registry.hasLiveRequest('a'), false)
  assert.equal(registry.backoffOf('a', failedMs)?.code, 'timeout')
  assert.equal(registry.backoffOf('a', failedMs)?.untilMs, failedMs + 5 * minute)
  assert.deepEqual(observe(registry, { ...facts, afterMs: 16 * minute }).timedOut, [])
})

test('a second increase extends the deadline, and a met request ends without a failure', () => {
  const registry = aRegistry()
  const groups = [aGroup('a', 5)]
  registry.registerScaleUp('a', 2, startMs)
  registry.registerScaleUp('a', 2, startMs + 10 * minute)
  assert.equal(registry.requestOf('a')?.increase, 4)
  const late = observe(registry, { groups, nodes: [aNode('a-1')], afterMs: 20 * minute })
  assert.deepEqual(late.timedOut, [])
  const met = observe(registry, { groups, nodes: nodes('a', 5), afterMs: 26 * minute })
  assert.deepEqual(met.timedOut, [])
  assert.equal(registry.isScalingUp(), false)
  assert.equal(registry.safety('a', startMs + 26 * minute), 'safe')
})

test('CAS-31 acceptable sizes follow requests, deletions and instances that never came', () => {
  const registry = aRegistry()
  const groups = [aGroup('a', 10), aGroup('b', 20)]
  const all = [...nodes('a', 8), ...nodes('b', 17)]
  const instances = new Map([
    ['a', [0, 1].map((n) => anInstance(`late-a-${n}`))],
    ['b', [0, 1, 2].map((n) => anInstance(`late-b-${n}`))],
  ])
  const none = new Map(groups.map(({ id }) => [id, []]))
  const range = (id: string) => registry.acceptableRangeOf(id)

  registry.registerScaleUp('a', 3, startMs)
  registry.registerScaleUp('b', 5, startMs)
  observe(registry, { groups, nodes: [...nodes('a', 6), ...nodes('b', 14)], instances: none })
  assert.deepEqual([range('a')?.min, range('b')?.min], [7, 15])

  const leaving = aRegistry()
  for (const [id, count] of Object.entries({ a: 2, b: 3 }))
    for (let n = 0; n < count; n++) leaving.registerDeletion(id, startMs)
  observe(leaving, { groups, nodes: all, instances: none })
  assert.deepEqual([leaving.acceptableRangeOf('a')?.max, leaving.acceptableRangeOf('b')?.max], [12, 23])
  observe(leaving, { groups, nodes: all, instances: none, afterMs: 5 * minute + 1 })
  assert.deepEqual([leaving.acceptableRangeOf('a')?.max, leaving.acceptableRangeOf('b')?.max], [10, 20])

  const waiting = aRegistry()
  observe(waiting, { groups, nodes: all, instances })
  observe(waiting, { groups, nodes: all, instances, afterMs: 16 * minute })
  assert.deepEqual([waiting.acceptableRangeOf('a')?.min, waiting.acceptableRangeOf('b')?.min], [8, 17])
})

test('a group without nodes is healthy when it is empty or all of it is awaited', () => {
  const registry = aRegistry()
  const groups = [aGroup('empty', 0, 0), aGroup('lost', 2), aGroup('new', 2)]
  registry.registerScaleUp('new', 2, startMs)
  observe(registry, { groups, nodes: [] })
  assert.deepEqual(
    ['empty', 'lost', 'new', 'unheard-of'].map((id) => registry.isGroupHealthy(id)),
    [true, false, true, false],
  )
  assert.equal(registry.safety('lost', startMs), 'unhealthy')
})

test('CAS-32 an instance without a node is left alone for 15 min and then removed', () => {
  const registry = aRegistry()
  const facts = (afterMs: number, target = 3, min = 1) => ({
    groups: [aGroup('a', target, min)],
    nodes: nodes('a', 2),
    instances: new Map([['a', [anInstance('a-0'), anInstance('a-1'), anInstance('stale')]]]),
    afterMs,
  })
  const removals = (afterMs: number) => registry.oldUnregistered(startMs + afterMs, () => 0)
  observe(registry, facts(0))
  observe(registry, facts(14 * minute))
  assert.deepEqual(removals(14 * minute), [])
  observe(registry, facts(15 * minute + 1))
  assert.deepEqual(registry.readinessOf('a')?.longUnregistered, ['exoscale://stale'])
  const [removal] = removals(15 * minute + 1)
  assert.equal(removal?.kind, 'remove')
  assert.deepEqual(removal?.kind === 'remove' && removal.instances.map(({ providerId }) => providerId), [
    'exoscale://stale',
  ])
  observe(registry, facts(16 * minute, 3, 3))
  assert.deepEqual(removals(16 * minute), [{ kind: 'atMinimum', groupId: 'a', count: 1 }])
  assert.deepEqual(
    registry.oldUnregistered(startMs + 16 * minute, () => 0).map(({ kind }) => kind),
    ['atMinimum'],
  )
})

test('CAS-32 of five old instances two are removed when two are above the minimum', () => {
  const stale = [0, 1, 2, 3, 4].map((n) => anInstance(`stale-${n}`))
  const facts = (count: number, afterMs: number) => ({
    groups: [aGroup('a', 5, 3)],
    nodes: [],
    instances: new Map([['a', stale.slice(5 - count)]]),
    afterMs,
  })
  const removed = (force: boolean, inProgress = 0) => {
    const registry = aRegistry({ forceDeleteUnregisteredNodes: force })
    observe(registry, facts(2, 0))
    observe(registry, facts(5, 1))
    observe(registry, facts(5, 16 * minute))
    return registry
      .oldUnregistered(startMs + 16 * minute, () => inProgress)
      .map((removal) =>
        removal.kind === 'remove' ? removal.instances.map(({ providerId }) => providerId) : removal.kind,
      )
  }
  assert.deepEqual(removed(false), [['exoscale://stale-3', 'exoscale://stale-4']])
  assert.deepEqual(removed(false, 1), [['exoscale://stale-3']])
  assert.deepEqual(removed(false, 2), ['atMinimum'])
  assert.equal(removed(true)[0]?.length, 5)
})

test('CAS-117 broken members without nodes make no incorrect size and are not removed', () => {
  const registry = aRegistry()
  const broken = [0, 1, 2].map((n) =>
    anInstance(`x-${n}`, { error: { code: 'no-code-exoscale', message: 'error' } }),
  )
  const facts = { groups: [aGroup('a', 3)], nodes: [], instances: new Map([['a', broken]]) }
  observe(registry, facts)
  observe(registry, { ...facts, afterMs: 60 * minute })
  assert.equal(registry.incorrectSizeOf('a'), undefined)
  assert.deepEqual(registry.sizeFixes(startMs + 60 * minute), [])
  assert.deepEqual(
    registry.oldUnregistered(startMs + 60 * minute, () => 0),
    [],
  )
  assert.equal(registry.readinessOf('a'), undefined)
})

test('a group that stays smaller than its target is told after 15 min, and one that changes begins anew', () => {
  const registry = aRegistry()
  const facts = (count: number, afterMs: number) => ({
    groups: [aGroup('a', 4)],
    nodes: nodes('a', count),
    instances: new Map([['a', nodes('a', count).map(({ metadata }) => anInstance(metadata.name))]]),
    afterMs,
  })
  observe(registry, facts(2, 0))
  observe(registry, facts(3, 10 * minute))
  observe(registry, facts(3, 24 * minute))
  assert.deepEqual(registry.sizeFixes(startMs + 24 * minute), [])
  observe(registry, facts(3, 26 * minute))
  assert.deepEqual(registry.sizeFixes(startMs + 26 * minute), [{ groupId: 'a', delta: 1 }])
  observe(registry, facts(5, 27 * minute))
  assert.equal(registry.incorrectSizeOf('a')?.registered, 5)
  observe(registry, facts(5, 60 * minute))
  assert.deepEqual(registry.sizeFixes(startMs + 60 * minute), [])
})

test('members that cannot be read are unknown, not gone', () => {
  const registry = aRegistry()
  const facts = { groups: [aGroup('a', 2)], nodes: [aNode('a-0')] }
  observe(registry, { ...facts, instances: new Map([['a', [anInstance('a-0'), anInstance('new')]]]) })
  observe(registry, { ...facts, instances: new Map(), afterMs: 16 * minute })
  assert.deepEqual(registry.readinessOf('a')?.longUnregistered, ['exoscale://new'])
  assert.equal(registry.incorrectSizeOf('a'), undefined)
})

test('an instance whose node has no provider ID yet is found by its name', () => {
  const registry = aRegistry()
  const bare = aNode('a-bare', { providerID: '' })
  const member = { providerId: 'exoscale://1', nodeName: 'a-bare', state: 'running' } as const
  observe(registry, { groups: [aGroup('a', 1)], nodes: [bare], instances: new Map([['a', [member]]]) })
  assert.deepEqual(registry.readinessOf('a')?.unregistered, [])
})

test('trap 10: after a restart nodes that still start up are upcoming without a request', () => {
  const registry = aRegistry()
  const booting = [
    anInstance('a-0'),
    anInstance('new-0', { state: 'creating' }),
    anInstance('new-1', { state: 'running' }),
    anInstance('odd', {}),
    anInstance('broken', { error: { code: 'x', message: 'y' } }),
    anInstance('a-starting'),
  ]
  const facts = {
    groups: [aGroup('a', 6)],
    nodes: [aNode('a-0'), aNode('a-starting', { ready: false, ageMs: minute })],
    instances: new Map([['a', booting]]),
  }
  observe(registry, facts)
  assert.equal(registry.upcomingOf('a', startMs), 3)
  observe(registry, { ...facts, groups: [aGroup('a', 3)] })
  assert.equal(registry.upcomingOf('a', startMs), 2)
  const nodesLater = [aNode('a-0'), aNode('a-starting', { ready: true })]
  observe(registry, { ...facts, nodes: nodesLater, afterMs: 16 * minute })
  assert.equal(registry.upcomingOf('a', startMs + 16 * minute), 0)
})

test('trap 10: a size written before a restart is upcoming while its members are being made, but not for ever', () => {
  const registry = aRegistry()
  const instances = new Map([['a', [anInstance('a-0'), anInstance('new-0', { state: 'creating' })]]])
  const facts = { groups: [aGroup('a', 6)], nodes: [aNode('a-0')], instances }
  observe(registry, facts)
  assert.equal(registry.upcomingOf('a', startMs), 5)
  observe(registry, { ...facts, afterMs: 2 * minute })
  assert.equal(registry.upcomingOf('a', startMs + 2 * minute), 1)
})

test('an instance that lost its node is not upcoming', () => {
  const registry = aRegistry()
  const instances = new Map([['a', [anInstance('a-0'), anInstance('a-1')]]])
  observe(registry, { groups: [aGroup('a', 2)], nodes: nodes('a', 2), instances })
  observe(registry, { groups: [aGroup('a', 2)], nodes: nodes('a', 1), instances, afterMs: minute })
  assert.deepEqual(registry.readinessOf('a')?.unregistered, ['exoscale://a-1'])
  assert.equal(registry.upcomingOf('a', startMs + minute), 0)
})

test('members that could not be created reduce the request, back off and are told once', () => {
  const registry = aRegistry()
  const failed = [0, 1].map((n) =>
    anInstance(`f-${n}`, { state: 'creating', error: { code: 'QUOTA', message: 'none left' } }),
  )
  const facts = { groups: [aGroup('a', 4)], nodes: [aNode('a-0')], instances: new Map([['a', failed]]) }
  registry.registerScaleUp('a', 3, startMs)
  assert.deepEqual(observe(registry, facts).failedCreations, [
    { groupId: 'a', code: 'QUOTA', message: 'none left', count: 2 },
  ])
  assert.equal(registry.requestOf('a')?.increase, 1)
  assert.equal(registry.safety('a', startMs), 'backoff')
  assert.deepEqual(observe(registry, { ...facts, afterMs: minute }).failedCreations, [])
  assert.deepEqual([...registry.instancesToReplace().values()], [failed])
})

test('a group that is gone takes its request and instances with it', () => {
  const registry = aRegistry()
  registry.registerScaleUp('a', 3, startMs)
  observe(registry, { groups: [aGroup('a', 4)], nodes: [] })
  assert.deepEqual(observe(registry, { groups: [], nodes: [], afterMs: 20 * minute }).timedOut, [])
  assert.equal(registry.hasLiveRequest('a'), false)
  assert.equal(registry.upcomingOf('a', startMs), 0)
})
