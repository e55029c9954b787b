import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resourceScore } from './scheduler-model.ts'

test('VER-47 up to 1.35 the balance with the pod counts, from 1.36 on what the pod changes of it', () => {
  const pod = new Float64Array([4, 0])
  const scores = (balance: 'use' | 'change') =>
    [new Float64Array([9, 1]), new Float64Array([5, 5])].map((free) =>
      Math.round(resourceScore(pod, { cpu: 0, memory: 1, balance }, [10, 10], free)),
    )
  assert.deepEqual(scores('use'), [110, 110])
  assert.deepEqual(scores('change'), [115, 95])
})
