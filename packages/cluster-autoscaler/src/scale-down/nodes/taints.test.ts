import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, deletionCandidateTaint, toBeDeletedTaint } from '../../names.ts'
import { aNode, anyTaint } from '../scale-down.test-support.ts'
import { softTaintChanges } from './soft-taints.ts'
import { taintTimeMs, taintValue, withHardTaint, withoutHardTaint } from './taints.ts'

test('CAS-86 the mark is a NoSchedule taint with the Unix time in seconds, and cordons in the same write', () => {
  const marked = withHardTaint(aNode('n'), taintValue(1_767_225_600_999), true)
  assert.deepEqual(marked?.spec?.taints, [
    { key: 'ToBeDeletedByClusterAutoscaler', value: '1767225600', effect: 'NoSchedule' },
  ])
  assert.equal(marked?.spec?.unschedulable, true)
  assert.equal(withHardTaint(aNode('n'), '1', false)?.spec?.unschedulable, undefined)
})

test('a node that is marked already is not written, not even to cordon it', () => {
  assert.equal(withHardTaint(aNode('n', { taints: [anyTaint('1')] }), '2', true), undefined)
})

test('taken back, the mark leaves the node as it was', () => {
  const other = { key: 'a', effect: 'NoSchedule' as const }
  for (const isCordoned of [false, true]) {
    const node = aNode('n', { isCordoned, taints: [other], annotations: { own: 'x' } })
    const marked = withHardTaint(node, '1', true)
    assert.notEqual(marked, undefined)
    assert.deepEqual(marked && withoutHardTaint(marked, true), node)
  }
})

test('a node that a user had cordoned stays cordoned, also for the process after this one', () => {
  const marked = withHardTaint(aNode('n', { isCordoned: true }), '1', true)
  assert.equal(marked?.metadata.annotations?.[annotations.cordonedBefore], 'true')
  assert.equal(marked && withoutHardTaint(marked, true)?.spec?.unschedulable, true)
})

test('without the flag the cordon stays', () => {
  const node = aNode('n', { isCordoned: true, taints: [anyTaint('1')] })
  assert.equal(withoutHardTaint(node, false)?.spec?.unschedulable, true)
  assert.equal(withoutHardTaint(aNode('n'), true), undefined)
})

test('the time of a taint is read from digits only', () => {
  const times = ['12', '', 'soon', '1e3', '-4'].map((value) => taintTimeMs(anyTaint(value)))
  assert.deepEqual(times, [12_000, undefined, undefined, undefined, undefined])
})

test('CAS-96 marks that no longer hold are removed first; nodes that are being deleted are left alone', () => {
  const soft = { key: deletionCandidateTaint, value: '1', effect: 'PreferNoSchedule' as const }
  const changes = softTaintChanges({
    nodes: [
      aNode('b-new'),
      aNode('a-new'),
      aNode('kept', { taints: [soft] }),
      aNode('needed', { taints: [soft] }),
      aNode('hard', { taints: [{ key: toBeDeletedTaint, value: '1', effect: 'NoSchedule' }] }),
      aNode('going'),
      aNode('other'),
    ],
    unneeded: new Set(['a-new', 'b-new', 'kept', 'hard', 'going']),
    going: new Set(['going']),
  })
  assert.deepEqual(changes, [
    { nodeName: 'needed', verb: 'remove' },
    { nodeName: 'a-new', verb: 'add' },
    { nodeName: 'b-new', verb: 'add' },
  ])
})
