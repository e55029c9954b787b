import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isKubeError, KubeError } from './contract.ts'

test('an error of the API server is recognised with and without a kind', () => {
  const error = new KubeError('notFound', 404, 'pods "a" not found')
  assert.ok(isKubeError(error))
  assert.ok(isKubeError(error, 'conflict', 'notFound'))
  assert.ok(!isKubeError(error, 'conflict'))
  assert.ok(!isKubeError(new Error('pods "a" not found')))
})

test('an error of another copy of this package is recognised', () => {
  const error = Object.assign(new Error('pods "a" not found'), { name: 'KubeError', kind: 'notFound' })
  assert.ok(isKubeError(error))
  assert.ok(isKubeError(error, 'notFound'))
  assert.ok(!isKubeError(error, 'conflict'))
})
