import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProviderMetric } from '@tenon/provider'
import { VirtualClock } from '@tenon/runtime'
import { Metrics } from './metrics.ts'

test('metrics of a provider are shown as they are at each scrape; a gauge without a value is not', async () => {
  let [refusals, overdue]: [number, number | undefined] = [0, undefined]
  const provider: readonly ProviderMetric[] = [
    { name: 'cloud_refusals_total', help: 'Refusals.', type: 'counter', value: () => refusals },
    { name: 'cloud_overdue', help: 'Overdue.', type: 'gauge', value: () => overdue },
  ]
  const sources = {
    offeringTroubles: () => [],
    buffers: () => [],
    quotas: () => [],
    groups: () => [],
    requests: () => [],
    passAgesMs: () => new Map<string, number>(),
    sweeps: [],
    provider,
  }
  const { registry } = new Metrics({ clock: new VirtualClock(0), sources })
  const lines = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('cloud_'))
  assert.deepEqual(await lines(), ['cloud_refusals_total 0'])
  ;[refusals, overdue] = [3, 2]
  assert.deepEqual(await lines(), ['cloud_refusals_total 3', 'cloud_overdue 2'])
  assert.deepEqual(await lines(), ['cloud_refusals_total 3', 'cloud_overdue 2'])
})
