import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { addProcessMetrics } from './framework-process.ts'

test('a scrape tells how long the event loop is held, and nothing that only a clock that ticks all the time could', async () => {
  const registry = new Registry()
  addProcessMetrics(registry)
  const names = (await registry.getMetricsAsJSON()).map(({ name }) => name)
  assert.deepEqual(
    names.filter((name) => name.startsWith('nodejs_eventloop_lag')),
    ['nodejs_eventloop_lag_seconds'],
  )
  for (const name of ['process_cpu_seconds_total', 'nodejs_heap_size_used_bytes', 'go_goroutines'])
    assert.ok(names.includes(name), name)
})
