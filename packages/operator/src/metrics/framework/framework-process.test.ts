import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { addMemoryLimits } from './framework-process.ts'

test('SCA-5 a metric says how near each limit on memory is', async () => {
  const registry = new Registry()
  addMemoryLimits(registry, [
    { name: 'heap', limitBytes: 200, usedBytes: () => 190 },
    { name: 'container', limitBytes: 400, usedBytes: () => 100 },
  ])
  const lines = (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#'))
  assert.deepEqual(lines.filter(Boolean), [
    'tenon_memory_limit_used_ratio{limit="heap"} 0.95',
    'tenon_memory_limit_used_ratio{limit="container"} 0.25',
  ])
})
