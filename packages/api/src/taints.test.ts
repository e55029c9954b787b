import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Taint, Toleration } from './objects.ts'
import { isKnownEphemeralTaint, sameTaint, taintText, tolerates, untoleratedTaint } from './taints.ts'

const taint: Taint = { key: 'team', value: 'a', effect: 'NoSchedule' }

test('a toleration covers a taint by key, operator, value and effect', () => {
  const cases: readonly (readonly [Toleration | object, boolean])[] = [
    [{ key: 'team', value: 'a' }, true],
    [{ key: 'team', operator: 'Equal', value: 'a', effect: 'NoSchedule' }, true],
    [{ key: 'team', operator: 'Exists' }, true],
    [{ operator: 'Exists' }, true],
    [{ key: '', operator: 'Exists', effect: '' }, true],
    [{ key: 'team', operator: '', value: 'a', effect: '' }, true],
    [{ key: 'team', value: 'b' }, false],
    [{ key: 'team' }, false],
    [{ key: 'other', operator: 'Exists' }, false],
    [{ key: 'team', operator: 'Exists', effect: 'NoExecute' }, false],
  ]
  for (const [toleration, covered] of cases) {
    assert.equal(tolerates(toleration as Toleration, taint), covered, JSON.stringify(toleration))
  }
})

test('the first taint that is not tolerated is named; PreferNoSchedule keeps nobody away', () => {
  const soft: Taint = { key: 'soft', effect: 'PreferNoSchedule' }
  const hard: Taint = { key: 'hard', effect: 'NoExecute' }
  assert.equal(untoleratedTaint([soft, taint, hard], [{ key: 'team', operator: 'Exists' }]), hard)
  assert.equal(untoleratedTaint([soft], undefined), undefined)
})

test('taints are the same by key and effect', () => {
  assert.ok(sameTaint(taint, { key: 'team', effect: 'NoSchedule' }))
  assert.ok(!sameTaint(taint, { key: 'team', effect: 'NoExecute' }))
  assert.equal(taintText(taint), 'team=a:NoSchedule')
  assert.equal(taintText({ key: 'team', effect: 'NoExecute' }), 'team:NoExecute')
})

test('the known ephemeral taints', () => {
  const texts: readonly (readonly [string, Taint['effect'], boolean])[] = [
    ['node.kubernetes.io/not-ready', 'NoSchedule', true],
    ['node.kubernetes.io/not-ready', 'NoExecute', true],
    ['node.kubernetes.io/unreachable', 'NoSchedule', true],
    ['node.kubernetes.io/unreachable', 'NoExecute', false],
    ['node.cloudprovider.kubernetes.io/uninitialized', 'NoSchedule', true],
    ['karpenter.sh/unregistered', 'NoExecute', true],
    ['readiness.k8s.io/network', 'NoSchedule', true],
    ['readiness.k8s.io/network', 'PreferNoSchedule', true],
    ['node.kubernetes.io/unschedulable', 'NoSchedule', false],
  ]
  for (const [key, effect, known] of texts) assert.equal(isKnownEphemeralTaint({ key, effect }), known, key)
})
