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
    [{ key: '', value: 'a' }, true],
    [{ key: '', value: 'b' }, false],
    [{ key: 'team', operator: 'Like', value: 'a' }, false],
    [{ key: 'other', operator: 'Exists' }, false],
    [{ key: 'team', operator: 'Exists', effect: 'NoExecute' }, false],
  ]
  for (const [toleration, covered] of cases) {
    assert.equal(tolerates(toleration as Toleration, taint), covered, JSON.stringify(toleration))
  }
})

test('SCH-49 Gt and Lt compare integers in their shortest form', () => {
  const covers = (operator: 'Gt' | 'Lt', bound: string, value: string): boolean =>
    tolerates({ key: 'rank', operator, value: bound }, { key: 'rank', value, effect: 'NoSchedule' })
  assert.ok(covers('Gt', '5', '10'))
  assert.ok(!covers('Gt', '5', '010'))
  assert.ok(!covers('Gt', '5', '5') && !covers('Lt', '5', '5'))
  assert.ok(covers('Lt', '5', '-10') && covers('Lt', '1', '0'))
  assert.ok(covers('Gt', '9223372036854775806', '9223372036854775807'))
  for (const text of ['', '+10', '-0', '00', '1e3', '10.0', ' 10', 'ten', '9223372036854775808']) {
    assert.ok(!covers('Gt', '5', text), `taint value ${text}`)
    assert.ok(!covers('Lt', text, '-5'), `toleration value ${text}`)
  }
  const other: Taint = { key: 'rank', value: '10', effect: 'NoExecute' }
  assert.ok(!tolerates({ key: 'rank', operator: 'Gt', value: '5', effect: 'NoSchedule' }, other))
  assert.ok(!tolerates({ key: 'grade', operator: 'Gt', value: '5' }, other))
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
