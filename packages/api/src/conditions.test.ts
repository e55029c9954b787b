import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConditionSet, type NewCondition } from './conditions.ts'
import type { Condition, KubeObject } from './objects.ts'

const schema = { dependents: ['Launched', 'Registered'] }
const created = '2026-01-01T00:00:00Z'
const at = (seconds: number) => Date.parse(created) + seconds * 1000

function anObject(
  conditions: readonly Condition[] = [],
  metadata: Partial<KubeObject['metadata']> = {},
): KubeObject & { readonly status: { readonly conditions: readonly Condition[] } } {
  return {
    apiVersion: 'test/v1',
    kind: 'Test',
    metadata: { name: 'a', generation: 1, creationTimestamp: created, ...metadata },
    status: { conditions },
  }
}

const show = (set: ConditionSet) => set.conditions.map((c) => `${c.type}=${c.status}/${c.reason}`).join(' ')
const launched: NewCondition = { type: 'Launched', status: 'True' }
const registered: NewCondition = { type: 'Registered', status: 'True' }

/** What the conditions look like after a round trip through the API server. */
const stored = (set: ConditionSet, metadata: Partial<KubeObject['metadata']> = {}) =>
  ConditionSet.of(anObject(set.conditions, metadata), schema)

test('LIF-154 a fresh object has every dependent Unknown and a root that lists them', () => {
  const set = ConditionSet.of(anObject(), schema)
  assert.equal(
    show(set),
    'Launched=Unknown/AwaitingReconciliation Registered=Unknown/AwaitingReconciliation Ready=Unknown/ReconcilingDependents',
  )
  assert.equal(set.get('Ready')?.message, 'Launched=Unknown, Registered=Unknown')
  assert.ok(set.conditions.every((c) => c.lastTransitionTime === created && c.observedGeneration === 1))
})

test('API-80 the transition time moves only with the status, the observed generation with every change', () => {
  const once = ConditionSet.of(anObject(), schema).set(launched, at(10))
  assert.equal(once.get('Launched')?.lastTransitionTime, '2026-01-01T00:00:10Z')
  const again = stored(once, { generation: 2 }).set({ ...launched, reason: 'Other', message: 'm' }, at(20))
  assert.deepEqual(again.get('Launched'), {
    type: 'Launched',
    status: 'True',
    reason: 'Other',
    message: 'm',
    lastTransitionTime: '2026-01-01T00:00:10Z',
    observedGeneration: 2,
  })
})

test('setting what is there already changes nothing', () => {
  const set = ConditionSet.of(anObject(), schema).set(launched, at(10))
  assert.equal(set.set(launched, at(20)), set)
})

test('API-81 API-88 an independent condition starts now, and leaves the root alone when it is cleared', () => {
  const set = ConditionSet.of(anObject(), schema).set({ type: 'Drifted', status: 'True' }, at(5))
  assert.equal(set.get('Drifted')?.lastTransitionTime, '2026-01-01T00:00:05Z')
  const cleared = set.clear('Drifted')
  assert.deepEqual(
    cleared.conditions.map((c) => c.type),
    ['Launched', 'Ready', 'Registered'],
  )
  assert.equal(cleared.clear('Drifted'), cleared)
})

test('API-88 root and dependents cannot be cleared', () => {
  const set = ConditionSet.of(anObject(), schema)
  for (const type of ['Ready', 'Launched']) assert.throws(() => set.clear(type), RangeError)
})

test('Ready is True once every dependent is, and conditions are stored oldest first with Ready last', () => {
  const set = ConditionSet.of(anObject(), schema).set(registered, at(20)).set(launched, at(10))
  assert.equal(show(set), 'Launched=True/Launched Registered=True/Registered Ready=True/Ready')
  assert.equal(set.get('Ready')?.message, '')
})

test('Ready is False when a dependent is False, and its message names the newest first', () => {
  const set = ConditionSet.of(anObject(), schema).set(
    { type: 'Registered', status: 'False', reason: 'MultipleNodesFound' },
    at(30),
  )
  assert.equal(set.get('Ready')?.status, 'False')
  assert.equal(set.get('Ready')?.reason, 'UnhealthyDependents')
  assert.equal(set.get('Ready')?.message, 'Registered=False, Launched=Unknown')
})

test('a dependent of an older generation keeps Ready back, also when it is False', () => {
  const old = ConditionSet.of(anObject(), schema)
    .set(registered, at(1))
    .set({ type: 'Launched', status: 'False', reason: 'X' }, at(2))
  const set = stored(old, { generation: 2 }).set(registered, at(3))
  assert.equal(set.get('Ready')?.status, 'Unknown')
  assert.equal(set.get('Ready')?.message, 'Launched=False')
})

test('LIF-45 re-stamping brings observed generations and Ready up to date', () => {
  const old = ConditionSet.of(anObject(), schema).set(launched, at(1)).set(registered, at(2))
  const set = stored(old, { generation: 5 }).restamp('Launched', at(9)).restamp('Registered', at(9))
  assert.ok(set.isTrue('Ready'))
  assert.ok(set.conditions.every((c) => c.observedGeneration === 5))
  assert.equal(set.get('Launched')?.lastTransitionTime, '2026-01-01T00:00:01Z')
})

test('LIF-55 API-90 while the object is deleted, one change brings all conditions to its generation', () => {
  const old = ConditionSet.of(anObject(), schema).set(launched, at(1)).set(registered, at(2))
  const deleted = stored(old, { generation: 2, deletionTimestamp: '2026-01-01T00:01:00Z' })
  const set = deleted.set({ type: 'Drained', status: 'Unknown', reason: 'Draining' }, at(70))
  assert.ok(set.isTrue('Ready'))
  assert.ok(set.conditions.every((c) => c.observedGeneration === 2))
})

test('a missing condition reads as Unknown', () => {
  const set = ConditionSet.of(anObject(), schema)
  assert.ok(set.isUnknown('Drifted') && !set.isTrue('Drifted') && !set.isFalse('Drifted'))
})

const pool = { dependents: ['ValidationSucceeded', 'NodeClassReady'] }
const valid: NewCondition = { type: 'ValidationSucceeded', status: 'True' }
const classReady: NewCondition = { type: 'NodeClassReady', status: 'True' }
const readyOf = (set: ConditionSet) => {
  const { status, reason, message } = set.get('Ready') ?? {}
  return `${status}/${reason}: ${message}`
}

test('API-75 a fresh NodePool: Ready and its dependents are Unknown, these awaiting reconciliation', () => {
  const set = ConditionSet.of(anObject(), pool)
  assert.deepEqual(
    set.conditions.map((c) => `${c.type}=${c.status}`),
    ['ValidationSucceeded=Unknown', 'NodeClassReady=Unknown', 'Ready=Unknown'],
  )
  for (const type of pool.dependents) assert.equal(set.get(type)?.reason, 'AwaitingReconciliation')
})

test('API-76 one dependent False at the current generation makes Ready False and is named', () => {
  const set = ConditionSet.of(anObject(), pool)
    .set(valid, at(1))
    .set({ type: 'NodeClassReady', status: 'False', reason: 'NodeClassNotFound' }, at(2))
  assert.equal(readyOf(set), 'False/UnhealthyDependents: NodeClassReady=False')
})

test('API-77 a False of an older generation does not make Ready False', () => {
  const old = ConditionSet.of(anObject(), pool).set(
    { type: 'NodeClassReady', status: 'False', reason: 'NodeClassNotFound' },
    at(1),
  )
  const edited = anObject(old.conditions, { generation: 2 })
  const set = ConditionSet.of(edited, pool).set({ type: 'NodeRegistrationHealthy', status: 'Unknown' }, at(2))
  assert.equal(
    readyOf(set),
    'Unknown/ReconcilingDependents: NodeClassReady=False, ValidationSucceeded=Unknown',
  )
})

test('API-78 API-79 Ready is True while both are at the current generation, and leaves it with an edit', () => {
  const first = ConditionSet.of(anObject(), pool).set(valid, at(1)).set(classReady, at(2))
  assert.equal(readyOf(first), 'True/Ready: ')
  const edited = ConditionSet.of(anObject(first.conditions, { generation: 2 }), pool).set(valid, at(3))
  assert.equal(readyOf(edited), 'Unknown/ReconcilingDependents: NodeClassReady=True')
  assert.equal(readyOf(edited.set(classReady, at(4))), 'True/Ready: ')
})

test('API-80 a new message alone does not move the transition time', () => {
  const no = { type: 'NodeClassReady', status: 'False', reason: 'NoImage' } as const
  const first = ConditionSet.of(anObject(), pool).set({ ...no, message: 'a' }, at(10))
  const again = first.set({ ...no, message: 'b' }, at(20)).get('NodeClassReady')
  assert.deepEqual([again?.message, again?.lastTransitionTime], ['b', '2026-01-01T00:00:10Z'])
})

test('API-81 a dependent first appears at the creation of its object, an independent one now', () => {
  const set = ConditionSet.of(anObject(), schema).set({ type: 'Drifted', status: 'True' }, at(50))
  assert.equal(set.get('Launched')?.lastTransitionTime, created)
  assert.equal(set.get('Drifted')?.lastTransitionTime, '2026-01-01T00:00:50Z')
})

test('API-88 clearing Consolidatable leaves the rest sorted by type', () => {
  const set = ConditionSet.of(anObject(), schema)
    .set({ type: 'Consolidatable', status: 'True' }, at(1))
    .set({ type: 'Drifted', status: 'True' }, at(2))
  const types = set.clear('Consolidatable').conditions.map(({ type }) => type)
  assert.deepEqual(types, ['Drifted', 'Launched', 'Ready', 'Registered'])
})

test('API-106 a first write of neither dependent says that both are Unknown', () => {
  const health: NewCondition = { type: 'NodeRegistrationHealthy', status: 'Unknown' }
  const set = ConditionSet.of(anObject(), pool).set(health, at(1))
  const [status, message = ''] = readyOf(set).split(': ')
  assert.equal(status, 'Unknown/ReconcilingDependents')
  assert.deepEqual(message.split(', ').toSorted(), ['NodeClassReady=Unknown', 'ValidationSucceeded=Unknown'])
})
