import assert from 'node:assert/strict'
import { test } from 'node:test'
import { normalizedLabel } from './labels.ts'

test('the five old label keys are read as the present ones, every other key as itself', () => {
  const present: Readonly<Record<string, string>> = {
    'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
    'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
    'beta.kubernetes.io/arch': 'kubernetes.io/arch',
    'beta.kubernetes.io/os': 'kubernetes.io/os',
    'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
  }
  for (const [old, key] of Object.entries(present)) assert.equal(normalizedLabel(old), key)
  for (const key of ['topology.kubernetes.io/zone', 'example.com/x', 'constructor', 'toString', '']) {
    assert.equal(normalizedLabel(key), key)
  }
})
