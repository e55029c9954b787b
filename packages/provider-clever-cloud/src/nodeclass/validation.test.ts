import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsOf, omissionOf } from './validation.ts'

function told(labels: Readonly<Record<string, string>>): readonly string[] {
  return findingsOf({ spec: { labels } }).map(
    ({ severity, field, message }) => `${severity} ${field}: ${message}`,
  )
}

test('CLV-67 reserved keys and values over 63 characters are errors that name the label', () => {
  assert.deepEqual(
    told({
      team: 'data',
      'kubernetes.io/os': 'linux',
      'node.kubernetes.io/x': '1',
      'clever-cloud.com/flavor': 'M',
    }),
    ['kubernetes.io/os', 'node.kubernetes.io/x', 'clever-cloud.com/flavor'].map((key) => {
      const prefix = key.slice(0, key.indexOf('/') + 1)
      return `error spec.labels["${key}"]: keys that start with ${prefix} are reserved: Clever Cloud refuses them`
    }),
  )
  assert.deepEqual(told({ team: 'x'.repeat(63) }), [])
  assert.match(
    told({ team: 'x'.repeat(64) }).join(),
    /^error spec\.labels\["team"\]: its value has 64 characters/,
  )
})

test('CLV-67 keys and values that no node could have are errors', () => {
  for (const key of ['', 'a b', 'a/b/c', '-a', 'k'.repeat(64), 'UPPER.case/x', '__proto__ '])
    assert.match(told({ [key]: 'x' }).join(), /^error spec\.labels\[".*"\]: not a label key: /, key)
  for (const value of ['a b', '-a', 'a/b', 'é', '\n'])
    assert.match(told({ team: value }).join(), /^error spec\.labels\["team"\]: value /, value)
  assert.deepEqual(told(JSON.parse('{"__proto__":"x"}')).length, 1)
})

test('CLV-8 labels that no NodeGroup gets are told with what to do', () => {
  for (const key of ['topology.kubernetes.io/zone', 'example.kubernetes.io/x', 'karpenter.sh/nodepool']) {
    const [finding] = findingsOf({ spec: { labels: { [key]: 'x' } } })
    assert.equal(finding?.severity, 'warning', key)
    assert.match(finding?.message ?? '', /^no node gets this label: /)
    assert.match(finding?.fix ?? '', /spec\.template\.metadata\.labels/)
  }
})

test('CLV-8 what a NodeGroup gets and what it does not get', () => {
  for (const [key, value] of [
    ['team', 'data'],
    ['team', ''],
    ['karpenter.clever-cloud.com/instance-cpu', '4'],
    ['karpenter.sh.example.com/x', 'y'],
    ['my-clever-cloud.com/x', 'y'],
  ] as const)
    assert.equal(omissionOf(key, value), undefined, key)
  for (const [key, value] of [
    ['clever-cloud.com/flavor', 'M'],
    ['node.kubernetes.io/instance-type', 'M'],
    ['topology.kubernetes.io/zone', 'par'],
    ['karpenter.sh/nodepool', 'default'],
    ['team', 'x'.repeat(64)],
  ] as const)
    assert.notEqual(omissionOf(key, value), undefined, key)
})

test('a class without labels has no findings', () => {
  for (const nodeClass of [{}, { spec: {} }, { spec: { labels: {} } }])
    assert.deepEqual(findingsOf(nodeClass), [])
})
