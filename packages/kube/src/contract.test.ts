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
